"""Replacing the content of files that a command corrects.

A file is replaced as a whole, so that a failure leaves the old content. Byte order mark and line ends stay."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pyverno.errors import UsageError

# trust rows: judged-file

__all__ = ["decode_lines", "encode_like", "replace_file"]

_MARK = b"\xef\xbb\xbf"


def decode_lines(content: bytes) -> str:
    """Return the text of a file without byte order mark, and with `\\n` where all of its lines end with `\\r\\n`.

    Raises UnicodeDecodeError for a file in another encoding than UTF-8.
    """
    text = content.removeprefix(_MARK).decode()
    return text.replace("\r\n", "\n") if _is_crlf(content) else text


def encode_like(text: str, old: bytes) -> bytes:
    """Return a text with the byte order mark and the line ends of the content that it replaces."""
    if _is_crlf(old):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return (_MARK if old.startswith(_MARK) else b"") + text.encode()


def _is_crlf(content: bytes) -> bool:
    return 0 < content.count(b"\n") == content.count(b"\r\n")


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
