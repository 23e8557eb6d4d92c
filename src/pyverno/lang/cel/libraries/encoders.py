"""The encoders library: base64.

This module must never guess an alphabet: standard base64 with or without padding.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.work import reading, walking

__all__ = ["ENCODERS"]


@function("base64.decode", "(string) -> bytes", work=walking(per=8))
def decode(text: str) -> bytes:
    """The bytes of a base64 text.

    CEL: base64.decode('aGVsbG8=') == b'hello' ⇒ true
    """
    compact = text.replace("\r", "").replace("\n", "")
    try:
        if len(compact) % 4 and not compact.endswith("="):
            compact += "=" * (-len(compact) % 4)
        return base64.b64decode(compact.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        position = next((index for index, char in enumerate(compact) if not _is_base64(char)), len(compact))
        raise EvaluationError(f"illegal base64 data at input byte {position}") from None


def _is_base64(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "+/=")


@function("base64.encode", "(bytes) -> string", work=reading())
def encode(data: bytes) -> str:
    """The base64 text of bytes.

    CEL: base64.encode(b'hello') ⇒ 'aGVsbG8='
    """
    return base64.b64encode(data).decode("ascii")


ENCODERS: Final = Library("encoders", (decode, encode), doc="Base64.")
