"""Rules for searching folders, which others may have made, and the files that a search left out."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

from pyverno.errors import UsageError
from pyverno.value import dataclass

# trust rows: judged-file, judged-name

__all__ = [
    "COMMAND_FILE",
    "HELM_TEMPLATES",
    "LEADING_DOT",
    "LEFT_OUT_FILE",
    "LEFT_OUT_FOLDER",
    "MAX_FOLDER_DEPTH",
    "SPECIAL",
    "FolderRules",
    "Skipped",
    "check_depth",
    "check_name",
    "check_regular",
    "has_control",
    "is_special",
    "list_folder",
]

HELM_TEMPLATES = "Helm templates"
"""The note for the folder `templates` of a chart."""

COMMAND_FILE = "a file of the command line"
"""The note for test suites, values files and other files that belong beside policies."""

LEADING_DOT = "a leading dot"
"""What leaves out files and folders that other tools apply all the same."""

LEFT_OUT_FILE = "left out"
LEFT_OUT_FOLDER = "a folder that is left out"
"""The notes for what a flag or an ignore file leaves out."""

MAX_FOLDER_DEPTH: Final = 100

SPECIAL = "a pipe, a socket or a device"
"""What is not read when it is found in a folder."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file or folder that was skipped, with the reason.

    `left_out_by` is the flag or file that left it out on purpose, "" for what is no manifest.
    """

    path: str
    reason: str
    left_out_by: str = ""


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules for searching folders.

    `include` and `exclude` are globs: without a slash they fit a name at any depth, with one the path below the folder
    (`**` fits any number of folders). `skips_foreign` leaves out what is recognised as no manifest.
    """

    recursive: bool = True
    suffixes: tuple[str, ...] = (".yaml", ".yml", ".json")
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    skips_foreign: bool = True


def list_folder(folder: Path, root: Path) -> tuple[list[Path], list[Path]]:
    """Return the entries of a folder below `root` in order of name: the others, and those that start with a dot.

    Raises UsageError for a folder that cannot be read, or is too deep.
    """
    check_depth(folder, root)
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read folder `{folder}`: {reason}", file=str(folder)) from error
    dotted = [entry for entry in entries if entry.name.startswith(".")]
    return [entry for entry in entries if not entry.name.startswith(".")], dotted


def check_depth(folder: Path, root: Path) -> None:
    """Raise UsageError for a folder that is too deep below another one."""
    if len(folder.parts) - len(root.parts) > MAX_FOLDER_DEPTH:
        raise UsageError(f"`{root}` has more than {MAX_FOLDER_DEPTH} folders in each other", file=str(root))


def has_control(name: str) -> bool:
    """Return whether a name has a control character.

    >>> has_control("a\\nb"), has_control("a\\u00a0b")
    (True, False)
    """
    return any(each < " " or "\x7f" <= each <= "\x9f" for each in name)


def check_name(path: Path) -> None:
    """Raise UsageError for a name with a control character: in outputs it would be lines and commands of its own."""
    if has_control(path.name):
        from pyverno.sinks.characters import one_line  # few errors quote such a name

        name = one_line(path.name)
        raise UsageError(f"`{path.parent}` has a name with a control character: `{name}`", file=str(path.parent))


def is_special(path: Path) -> bool:
    """Return whether a path is a pipe, a socket or a device, also through a link.

    One that a folder of others holds is never read: it may have no end, or wait for ever.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # reading says why
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def check_regular(path: Path) -> Path:
    """Return the path of a file that was found in a folder; raises UsageError for a pipe, a socket or a device."""
    if is_special(path):
        raise UsageError(f"cannot read `{path}`: it is {SPECIAL}", file=str(path))
    return path
