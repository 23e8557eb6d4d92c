"""Strict CBOR, as far as COSE envelopes need it: no floats, no indefinite lengths, no duplicate keys, no leniency.

A general decoder turns tags into objects (regular expressions, shared references, decimals) and takes the last of two
equal keys; signed documents from strangers need neither.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyverno.errors import VerificationError

__all__ = ["Tagged", "encode_bytes", "read_cbor"]

_MAX_DEPTH: Final = 8
_MAX_ITEMS: Final = 1024
_SIMPLE: Final = {20: False, 21: True, 22: None}


class Tagged(NamedTuple):
    """A value with the number of its tag."""

    tag: int
    value: object


def read_cbor(data: bytes, what: str) -> object:
    """Read one value: int, bytes, str, bool, None, list, dict or Tagged; raises VerificationError.

    >>> read_cbor(bytes.fromhex("a20126616364"), "the header")
    Traceback (most recent call last):
    ...
    pyverno.errors.VerificationError: the header is no valid CBOR
    >>> read_cbor(bytes.fromhex("a1013826"), "the header")
    {1: -39}
    """
    reader = _Reader(data, what)
    found = reader.value(0)
    if reader.position != len(data):
        raise VerificationError(f"{what} is followed by other bytes")
    return found


def encode_bytes(data: bytes) -> bytes:
    """Return the CBOR of a byte string.

    >>> encode_bytes(b"a")
    b'Aa'
    """
    size = len(data)
    if size < 24:
        return bytes((0x40 | size,)) + data
    width = next(each for each in range(4) if size < 1 << (8 << each))
    return bytes((0x40 | 24 + width,)) + size.to_bytes(1 << width) + data


class _Reader:
    def __init__(self, data: bytes, what: str) -> None:
        self.data = data
        self.what = what
        self.position = 0
        self.items = 0

    def value(self, depth: int) -> object:
        self.items += 1
        if depth > _MAX_DEPTH or self.items > _MAX_ITEMS:
            raise VerificationError(f"{self.what} is nested too deeply or holds too many values")
        head = self._take(1)[0]
        major, info = head >> 5, head & 0x1F
        if major == 7:
            if info not in _SIMPLE:
                raise self._invalid()
            return _SIMPLE[info]
        number = self._number(info)
        match major:
            case 0:
                return number
            case 1:
                return -1 - number
            case 2:
                return self._take(number)
            case 3:
                return self._read_text(number)
            case 4:
                return [self.value(depth + 1) for _ in range(self._count(number))]
            case 5:
                return self._map(self._count(number), depth)
            case _:
                return Tagged(number, self.value(depth + 1))

    def _number(self, info: int) -> int:
        if info < 24:
            return info
        if info > 27:
            raise self._invalid()
        return int.from_bytes(self._take(1 << info - 24))

    def _count(self, number: int) -> int:
        if number > _MAX_ITEMS:
            raise VerificationError(f"{self.what} is nested too deeply or holds too many values")
        return number

    def _read_text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise self._invalid() from None

    def _map(self, count: int, depth: int) -> dict[int | str, object]:
        found: dict[int | str, object] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if isinstance(key, bool) or not isinstance(key, int | str):
                raise self._invalid()
            if key in found:
                raise VerificationError(f"{self.what} has the key `{str(key)[:64]}` twice")
            found[key] = self.value(depth + 1)
        return found

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise self._invalid()
        found = self.data[self.position : end]
        self.position = end
        return found

    def _invalid(self) -> VerificationError:
        return VerificationError(f"{self.what} is no valid CBOR")
