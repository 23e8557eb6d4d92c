"""Bounds of names that a file of the judged tree holds: they stay in its own tree, links included."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from pyverno.cli.args.configpath import searched_folders

__all__ = ["outside", "own_tree"]


def own_tree(folder: Path) -> Path:
    """Return the root of the repository around a folder; outside of a repository, the folder itself."""
    return Path(searched_folders(os.path.abspath(folder))[-1])  # noqa: PTH100 - links stay as they are


def outside(text: str, *roots: Path) -> str:
    """Return what lies outside of some folders, "" for a path or pattern that stays in one of them.

    Links count as what they lead to.
    """
    bounds = [os.path.realpath(root) for root in roots]
    for each in _named(text):
        target = Path(os.path.realpath(each))
        if not any(target.is_relative_to(root) for root in bounds):
            return str(target)
    return ""


def _named(text: str) -> list[str]:
    """Return the paths that a text names: itself, and what fits it as a pattern."""
    if not glob.has_magic(text):
        return [text]
    # a part after a pattern may climb even where nothing fits yet
    return [text, *glob.glob(text, recursive=True)]  # noqa: PTH207 - patterns may be absolute
