"""Links in folders, which may lead out of them or in circles, and the top of the tree that a file belongs to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.offline.folderrules import Skipped

# trust rows: judged-file

__all__ = ["OUTSIDE", "FollowedLinks", "is_inside", "tree_root"]

OUTSIDE: Final = "a link to a place outside of the folder"
"""Why a link is left out: whoever wrote the folder would choose what is read of this machine."""

_MARKER_BYTES: Final = 4096


class FollowedLinks:
    """The links of one search below `root`: each of their folders is searched once, and never from within itself.

    None is followed that leads out of the root.
    """

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

    def leads_out(self, path: Path) -> bool:
        """Return whether a file or folder is a link to a place outside of the root."""
        return path.is_symlink() and not is_inside(path, self._root)  # guard: a search follows no link out of its root

    def leave_out(self, path: Path, skipped: list[Skipped] | None) -> bool:
        """Return whether a file or folder leads out, and note it; without a list for notes, raise UsageError."""
        if not self.leads_out(path):
            return False
        if skipped is None:
            raise UsageError(f"`{path}` is {OUTSIDE}, which is not followed: name the file itself", file=str(path))
        skipped.append(Skipped(str(path), OUTSIDE))
        return True


def is_inside(path: Path, root: Path) -> bool:
    """Return whether what a path leads to, through all links, is below a folder; `root` is one without links."""
    return Path(os.path.realpath(path)).is_relative_to(root)


def tree_root(folder: Path) -> Path | None:
    """Return the top of the tree of a folder: its repository, else the working folder if it is below; else None.

    A submodule belongs to the repository around it.
    """
    real = folder.resolve()
    for each in (real, *real.parents):
        marker = each / ".git"
        if marker.is_dir() or (marker.is_file() and not _is_of_submodule(marker)):
            return each
    here = Path.cwd().resolve()
    return here if real.is_relative_to(here) else None


def _is_of_submodule(marker: Path) -> bool:
    with marker.open("rb") as file:
        return b"/modules/" in file.read(_MARKER_BYTES)
