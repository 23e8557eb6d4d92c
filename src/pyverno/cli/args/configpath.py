"""The path of a run's configuration file. This module must never read it, nor import more than `os`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["CONFIG_FILE", "PROJECT_FILE", "config_path", "runs_as_kyverno"]

CONFIG_FILE = ".pyverno.yaml"
PROJECT_FILE = "pyproject.toml"
_TABLE = b"[tool.pyverno"


def runs_as_kyverno() -> bool:
    """Return whether the command was run under the name `kyverno`, so that it behaves as Kyverno's command."""
    return os.path.splitext(os.path.basename(sys.argv[0]))[0] == "kyverno"  # noqa: PTH119, PTH122 - no pathlib here


def config_path(words: Sequence[str]) -> str:
    """Return the path of the file, "" without one: that of `--config`, or the nearest up to the root of the repository.

    Outside a repository only the working folder counts: folders above it may belong to other users. The command has
    none under the name `kyverno`.
    """
    given = ""
    for position, word in enumerate(words):
        if word == "--config":
            given = words[position + 1] if position + 1 < len(words) else ""
        elif word.startswith("--config="):
            given = word.partition("=")[2]
    if given:
        return "" if given == "none" else given
    if runs_as_kyverno():
        return ""
    try:
        return _nearest(os.getcwd())  # noqa: PTH109
    except FileNotFoundError:
        return ""  # the working folder was removed


def _nearest(start: str) -> str:
    folders = [start]
    while not os.path.lexists(os.path.join(folders[-1], ".git")):  # noqa: PTH118
        parent = os.path.dirname(folders[-1])  # noqa: PTH120
        if parent == folders[-1]:
            folders = [start]
            break
        folders.append(parent)
    for folder in folders:
        path = os.path.join(folder, CONFIG_FILE)  # noqa: PTH118
        if os.path.isfile(path):  # noqa: PTH113
            return path
        path = os.path.join(folder, PROJECT_FILE)  # noqa: PTH118
        if _has_table(path):
            return path
    return ""


def _has_table(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _TABLE in file.read()
    except OSError:
        return False
