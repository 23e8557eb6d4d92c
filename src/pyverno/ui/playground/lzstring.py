"""The compression of links of Kyverno's playground: LZ-string in base64.

The text is a stream of codes of growing width, each a character or an earlier sequence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.errors import UsageError

__all__ = ["decompress"]

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_CHARACTER_BITS: Final = {0: 8, 1: 16}
"""Codes before the bits of a new character."""

_END: Final = 2
_FIRST_FREE: Final = 3
_MOST_CHARACTERS: Final = 4 * 1024 * 1024


def decompress(text: str) -> str:
    """Return the text; raises UsageError for an invalid compression or too long a text.

    >>> decompress("BYUwNmD2Q===")
    'hello'
    """
    bits = _bits(text)
    try:
        units = "".join(_sequences(bits))
    except StopIteration:
        raise UsageError("the link is damaged: it may have been cut") from None
    # characters are units of UTF-16
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _bits(text: str) -> Iterator[int]:
    for character in text.rstrip("="):
        value = _ALPHABET.find(character)
        if value < 0:
            raise UsageError(f"the link is damaged: `{character}` is no character of base64")
        for shift in range(5, -1, -1):
            yield value >> shift & 1


def _read(bits: Iterator[int], count: int) -> int:
    """Read a number, the lowest bit first; raises StopIteration where the stream ends."""
    found = 0
    for position in range(count):
        found |= next(bits) << position
    return found


def _sequences(bits: Iterator[int]) -> list[str]:
    code = _read(bits, 2)
    if code == _END:
        return []
    if code not in _CHARACTER_BITS:
        raise UsageError("the link is damaged: it begins with no character")
    before = chr(_read(bits, _CHARACTER_BITS[code]))
    known = {_FIRST_FREE: before}
    found, length, width = [before], 1, 3
    following = _FIRST_FREE + 1
    while (code := _read(bits, width)) != _END:
        if code in _CHARACTER_BITS:
            entry = chr(_read(bits, _CHARACTER_BITS[code]))
            known[following] = entry
            following += 1
            width = _widen(following, width)
        elif code in known:
            entry = known[code]
        elif code == following:
            entry = before + before[0]
        else:
            raise UsageError("the link is damaged: it refers to what it does not hold")
        length += len(entry)
        if length > _MOST_CHARACTERS:
            raise UsageError(f"the link holds more than {_MOST_CHARACTERS} characters")
        found.append(entry)
        known[following] = before + entry[0]
        following += 1
        width = _widen(following, width)
        before = entry
    return found


def _widen(following: int, width: int) -> int:
    """Return the width of the next code: one bit more once the codes no longer fit."""
    return width + 1 if following >= 1 << width else width
