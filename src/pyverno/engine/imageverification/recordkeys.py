"""Keys of the installation that bind records of verified images: an HMAC-SHA256 that other clients cannot make.

A Host gives them to rules; without keys no record is sealed and none counts. This module must never show a key: not in
a representation, not in an error.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

__all__ = ["KEY_BYTES", "NO_RECORD_KEYS", "RecordKeys", "Seal"]

KEY_BYTES: Final = 32
_ID_DIGITS: Final = 16


class Seal(NamedTuple):
    """The id of a key, and the code of a message in hexadecimal digits."""

    key: str
    code: str


class RecordKeys:
    """The key that seals, and older ones whose seals still count; a key shorter than 32 bytes is a ValueError.

    >>> keys = RecordKeys(b"k" * 32)
    >>> keys.holds(b"text", keys.seal(b"text")), keys.holds(b"other text", keys.seal(b"text"))
    (True, False)
    >>> keys
    <RecordKeys: 1>
    """

    __slots__ = ("_keys",)

    def __init__(self, *keys: bytes) -> None:
        """Take the keys, the current one first."""
        if any(len(key) < KEY_BYTES for key in keys):
            raise ValueError(f"a key of records has at least {KEY_BYTES} bytes")
        self._keys = {key_id(key): key for key in keys}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self._keys)}>"

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def current(self) -> str:
        """The id of the key that seals; the empty text without keys."""
        return next(iter(self._keys), "")

    def seal(self, message: bytes) -> Seal | None:
        """Return the seal of a message by the current key; None without keys."""
        current = self.current
        return Seal(current, _code(self._keys[current], message)) if current else None

    def holds(self, message: bytes, seal: Seal | None) -> bool:
        """Return whether one of the keys made a seal of this message."""
        key = None if seal is None else self._keys.get(seal.key)
        if key is None or seal is None:
            return False
        return hmac.compare_digest(_code(key, message).encode(), seal.code.encode("utf-8", "replace"))


NO_RECORD_KEYS: Final = RecordKeys()


def key_id(key: bytes) -> str:
    """Return the public name of a key, from which the key cannot be computed."""
    return hashlib.sha256(b"id of a key of records\0" + key).hexdigest()[:_ID_DIGITS]


def _code(key: bytes, message: bytes) -> str:
    return hmac.new(key, message, hashlib.sha256).hexdigest()
