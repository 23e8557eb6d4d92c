"""Replacing the content of files that a command corrects: all at once, so that a failure leaves the old content."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pyverno.errors import UsageError

__all__ = ["replace_file"]


def replace_file(path: Path, content: bytes) -> None:
    """Write the whole content of a file, which keeps its mode; a link stays a link, and its file is written.

    A file that does not exist is made. Raises UsageError where the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.new")
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        new.unlink(missing_ok=True)
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o666), "wb") as file:
                file.write(content)
            if mode is not None:
                new.chmod(mode)
            new.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink()
            raise
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error
