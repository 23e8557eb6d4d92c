"""The entries of folders that a search goes through, which others may have made."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyverno.errors import UsageError

__all__ = ["MAX_FOLDER_DEPTH", "check_depth", "check_name", "has_control", "list_folder"]

MAX_FOLDER_DEPTH: Final = 100


def list_folder(folder: Path, root: Path) -> list[Path]:
    """Return the entries of a folder below `root` in order of name, without those that start with a dot.

    Raises UsageError for a folder that cannot be read, or is too deep.
    """
    check_depth(folder, root)
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot read folder `{folder}`: {reason}", file=str(folder)) from error
    return [entry for entry in entries if not entry.name.startswith(".")]


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
        name = path.name.encode("unicode_escape").decode()
        raise UsageError(f"`{path.parent}` has a name with a control character: `{name}`", file=str(path.parent))
