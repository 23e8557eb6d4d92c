"""JSON and base64 of signed documents, read without leniency.

A parser that accepts duplicate keys, foreign characters or trailing text reads another document than the one that a
different parser verified; all of these are refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from typing import Any, Final

from pyverno.errors import VerificationError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.jsonscan import has_more_values

__all__ = ["MAX_DOCUMENT", "MAX_VALUES", "decode_base64", "encode_text", "read_json", "read_object", "text_of"]

MAX_DOCUMENT: Final = 16 * 1024 * 1024
"""The largest signed document, in bytes."""

MAX_VALUES: Final = 1_000_000
"""The most values in one document, as many as 20 MiB of usual lists have: an empty list takes 64 bytes of memory."""

_MAX_SHOWN: Final = 64


def read_json(data: bytes, what: str) -> JSON:
    """Parse UTF-8 JSON; raises VerificationError for syntax errors, duplicate keys, NaN, and excessive size or depth.

    >>> read_json(b'{"a": 1}', "the payload")
    {'a': 1}
    """
    if len(data) > MAX_DOCUMENT:
        raise VerificationError(f"{what} is larger than {MAX_DOCUMENT} bytes")
    if has_more_values(data, MAX_VALUES):
        raise VerificationError(f"{what} has more than {MAX_VALUES} values")
    try:
        found = _DECODER.decode(data.decode("utf-8"))
        if b"\\ud" in data or b"\\uD" in data:
            json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except VerificationError as error:
        raise VerificationError(f"{what} {error.message}") from None
    except (ValueError, RecursionError):
        raise VerificationError(f"{what} is not valid JSON") from None
    return found


def read_object(data: bytes, what: str) -> JSONObject:
    """Parse a JSON object; raises VerificationError for anything else."""
    found = read_json(data, what)
    if not isinstance(found, dict):
        raise VerificationError(f"{what} is not a JSON object")
    return found


def decode_base64(text: object, what: str) -> bytes:
    """Decode base64 in either alphabet, padded or not; raises VerificationError for anything else.

    >>> decode_base64("_-8=", "the digest") == decode_base64("/+8", "the digest")
    True
    """
    if not isinstance(text, str) or len(text) > MAX_DOCUMENT:
        raise VerificationError(f"{what} is not base64")
    with suppress(ValueError):
        return binascii.a2b_base64(text, strict_mode=True)  # the usual form, in one step
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise VerificationError(f"{what} is not base64") from None


def encode_text(text: str, what: str) -> bytes:
    """Return a text of a registry as UTF-8; raises VerificationError for invalid UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise VerificationError(f"{what} is no text") from None


def text_of(source: JSONObject, key: str, what: str) -> str:
    """Return a text field; raises VerificationError when it is missing or no text."""
    found = source.get(key)
    if not isinstance(found, str):
        raise VerificationError(f"{what} has no text `{key}`")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise VerificationError(f"has the key `{twice[:_MAX_SHOWN]}` twice")
    return found


def _no_constant(_text: str) -> Any:
    raise VerificationError("holds a number that JSON does not have")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
