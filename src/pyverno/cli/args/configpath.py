"""The path of a run's configuration file. This module must never read it, nor import more than `os`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# trust rows: command-line, found-configuration, named-configuration

__all__ = [
    "CONFIG_FILE",
    "PROJECT_FILE",
    "TABLE",
    "config_path",
    "empty_flag",
    "has_settings",
    "named_path",
    "named_revision",
    "runs_as_kyverno",
    "searched_folders",
]

CONFIG_FILE = ".pyverno.yaml"
PROJECT_FILE = "pyproject.toml"
TABLE = b"[tool.pyverno"
"""The beginning of a table of ours in a `pyproject.toml`."""


def runs_as_kyverno() -> bool:
    """Return whether the command was run under the name `kyverno`, so that it behaves as Kyverno's command."""
    return os.path.splitext(os.path.basename(sys.argv[0]))[0] == "kyverno"  # noqa: PTH119, PTH122 - no pathlib here


def config_path(words: Sequence[str]) -> str:
    """Return the path of the file, "" without one: that of `--config`, or the nearest up to the root of the repository.

    Outside a repository only the working folder counts: folders above it may belong to other users. The command has
    none under the name `kyverno`.
    """
    given = named_path(words)
    if given:
        return "" if given == "none" else given
    if runs_as_kyverno():
        return ""
    try:
        return _nearest(os.getcwd())  # noqa: PTH109
    except FileNotFoundError:
        return ""  # the working folder was removed


def named_path(words: Sequence[str]) -> str:
    """Return the file that `--config` names, "" where a file has to be found."""
    return _last_value("--config", words) or ""


def named_revision(words: Sequence[str]) -> str:
    """Return the revision of git from which `--config-revision` takes the file, "" for the working tree."""
    return _last_value("--config-revision", words) or ""


def empty_flag(words: Sequence[str]) -> str:
    """Return which of the two flags has an empty value, "" for none: a variable of a pipeline may be empty."""
    flags = ("--config", "--config-revision")
    return next((each for each in flags if _last_value(each, words) == ""), "")


def _last_value(flag: str, words: Sequence[str]) -> str | None:
    given = None
    for position, word in enumerate(words):
        if word == "--":  # guard: words after two hyphens are names of files
            break
        if word == flag:
            given = words[position + 1] if position + 1 < len(words) else ""
        elif word.startswith(f"{flag}="):
            given = word.partition("=")[2]
    return given


def searched_folders(start: str) -> list[str]:
    """Return the folders in which a file is searched, the root of the repository last.

    A repository, or a file, of another user counts for nothing: in a folder that many may write, such as `/tmp`, it
    would decide for everybody below.
    """
    folders = [start]
    while not _is_own(os.path.join(folders[-1], ".git"), start):  # noqa: PTH118
        parent = os.path.dirname(folders[-1])  # noqa: PTH120
        if parent == folders[-1]:
            return [start]
        folders.append(parent)
    return folders


def has_settings(words: Sequence[str]) -> bool:
    """Return whether a command line has a configuration file, may have one in a revision, or names none in vain."""
    return bool(empty_flag(words) or named_revision(words) or config_path(words))


def _nearest(start: str) -> str:
    for folder in searched_folders(start):
        path = os.path.join(folder, CONFIG_FILE)  # noqa: PTH118
        if os.path.isfile(path) and _is_own(path, start):  # noqa: PTH113
            return path
        path = os.path.join(folder, PROJECT_FILE)  # noqa: PTH118
        if os.path.isfile(path) and _is_own(path, start) and _has_table(path):  # noqa: PTH113
            return path
    return ""


def _is_own(path: str, start: str) -> bool:
    """Return whether a file or folder exists and belongs to this user, to root, or to whom the working folder does."""
    try:
        owner = os.lstat(path).st_uid
        owners = {0, os.stat(start).st_uid, os.geteuid() if hasattr(os, "geteuid") else 0}  # noqa: PTH116
    except OSError:
        return False
    return owner in owners  # guard: a file of another user configures nothing


def _has_table(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return TABLE in file.read()
    except OSError:
        return False
