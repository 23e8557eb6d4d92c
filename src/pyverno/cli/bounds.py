"""Bounds of names that a file of the judged tree holds: they stay in its own tree, links included."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from pyverno.offline.links import is_inside, tree_root

# trust rows: found-configuration

__all__ = ["outside", "own_tree"]


def own_tree(folder: Path) -> Path:
    """Return the top of the tree of a folder: its repository, the working folder around it, or the folder itself."""
    return tree_root(folder) or folder


def outside(text: str, *roots: Path) -> str:
    """Return what lies outside of some folders, "" for a path or pattern that stays in one of them.

    Links count as what they lead to.
    """
    bounds = [root.resolve() for root in roots]
    for each in _named(text):
        if not any(is_inside(Path(each), root) for root in bounds):
            return os.path.realpath(each)
    return ""


def _named(text: str) -> list[str]:
    """Return the paths that a text names: itself, and what fits it as a pattern."""
    if not glob.has_magic(text):
        return [text]
    # a part after a pattern may climb even where nothing fits yet
    return [text, *glob.glob(text, recursive=True)]  # noqa: PTH207 - patterns may be absolute
