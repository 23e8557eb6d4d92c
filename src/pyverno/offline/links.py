"""Links between folders, which may lead in circles."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FollowedLinks"]


class FollowedLinks:
    """The links of one search below `root`: each of their folders is searched once, and never from within itself."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._seen: set[Path] = set()

    def should_enter(self, folder: Path) -> bool:
        """Return whether a search enters this folder; a folder that is no link is always entered."""
        if not folder.is_symlink():
            return True
        target = folder.resolve()
        if target in self._seen or any(each.is_relative_to(target) for each in (self._root, folder.parent.resolve())):
            return False
        self._seen.add(target)
        return True
