"""Files and folders that hold keys: open to their owner only, whatever was there before, and never behind a link.

A file is written beside its place and then moved there, so that a reader sees the old content or the new one. Loose
modes of existing files and folders are tightened. This module must never write anywhere but in the given folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from pyverno.errors import UsageError

__all__ = ["make_private_file", "make_private_folder", "read_private", "write_private"]

_FILE_MODE, _FOLDER_MODE, _PARENT_MODE, _OTHERS = 0o600, 0o700, 0o755, 0o077


def write_private(path: Path, content: bytes) -> None:
    """Put a file with this content in its place, at once; raises UsageError for links and what is no file."""
    try:
        _check_file(path)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with 0600, never a link
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _refusal(path, "written", error) from None


def read_private(path: Path) -> bytes:
    """Return the content of a file that belongs to this user, and close the file to others; raises UsageError."""
    try:
        with os.fdopen(_open(path, os.O_RDONLY), "rb") as file:
            return file.read()
    except OSError as error:
        raise _refusal(path, "read", error) from None


def make_private_file(path: Path) -> None:
    """Make sure that a file is there, that it is one, and that it is closed to others; raises UsageError."""
    try:
        os.close(_open(path, os.O_RDWR | os.O_CREAT))
    except OSError as error:
        raise _refusal(path, "written", error) from None


def make_private_folder(path: Path, *, known: str) -> None:
    """Make sure that a folder is there and closed to others; raises UsageError.

    One that is there and open to others is closed when it is empty or holds the file `known`, which shows whose it is;
    a folder with other contents (`/tmp`, a home) is refused, because closing it would lock out its users.
    """
    try:
        for missing in (each for each in reversed(path.parents) if not each.exists()):
            missing.mkdir(mode=_PARENT_MODE, exist_ok=True)  # others who may write in it could replace the folder
        path.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            _check_owner(path, found)
            if found.st_mode & _OTHERS:
                names = os.listdir(descriptor)  # noqa: PTH208  # the folder that was opened, not one that took its place
                if names and known not in names:
                    raise UsageError(
                        f"`{path}` is open to others and holds other files: close it or name an empty folder"
                    )
                os.fchmod(descriptor, _FOLDER_MODE)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
            raise _link(path) from None
        raise UsageError(f"`{path}` cannot be used as a folder: {(error.strerror or str(error)).lower()}") from None


def _open(path: Path, how: int) -> int:
    """Open a plain file of this user without following a link, and close it to others."""
    descriptor = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, _FILE_MODE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"`{path}` is no plain file")
        _check_owner(path, found)
        if found.st_mode & _OTHERS:
            os.fchmod(descriptor, _FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_file(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise _link(path)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"`{path}` is no plain file")


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (0, os.geteuid()):
        raise UsageError(f"`{path}` belongs to another user")


def _link(path: Path) -> UsageError:
    return UsageError(f"`{path}` is a symbolic link, which is not followed")


def _refusal(path: Path, verb: str, error: OSError) -> UsageError:
    if error.errno == errno.ELOOP:
        return _link(path)
    return UsageError(f"`{path}` cannot be {verb}: {(error.strerror or str(error)).lower()}")
