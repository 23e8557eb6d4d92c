"""Bounds of a configuration file that was found: what it names, and where it is, stays in its repository."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from pyverno.cli.args.configpath import searched_folders

__all__ = ["stray_path"]


def stray_path(text: str, folder: Path) -> str:
    """Return what lies outside of the repository around a folder, "" for a path or pattern that stays in it.

    Links count as what they lead to.
    """
    root = os.path.realpath(searched_folders(os.path.abspath(folder))[-1])  # noqa: PTH100 - links stay as they are
    for each in _named(text):
        target = os.path.realpath(each)
        if not Path(target).is_relative_to(root):
            return target
    return ""


def _named(text: str) -> list[str]:
    """Return the paths that a text names: itself, and what fits it as a pattern."""
    if not glob.has_magic(text):
        return [text]
    # a part after a pattern may climb even where nothing fits yet
    return [text, *glob.glob(text, recursive=True)]  # noqa: PTH207 - patterns may be absolute
