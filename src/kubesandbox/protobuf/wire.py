"""The wire format of protobuf: numbered fields, each a number or a run of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias

from pyverno.errors import DocumentError

__all__ = ["WireType", "fields", "packed", "signed", "write_field"]

Payload: TypeAlias = int | bytes
"""The value of a field: a number, or bytes whose meaning the message knows."""

_LONGEST_VARINT = 10
_SIGN = 1 << 63


class WireType(IntEnum):
    """The encoding of a field."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


_SIZES = {WireType.FIXED64: 8, WireType.FIXED32: 4}


def fields(data: bytes) -> Iterator[tuple[int, WireType, Payload]]:
    r"""Yield number, wire type and value of the fields of a message; raises DocumentError for what is none.

    Numbers of fixed size are given as their bytes.

    >>> list(fields(b"\x08\x96\x01\x12\x02hi"))
    [(1, <WireType.VARINT: 0>, 150), (2, <WireType.BYTES: 2>, b'hi')]
    """
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number = tag >> 3
        try:
            wire = WireType(tag & 7)
        except ValueError:
            raise DocumentError(f"proto: illegal wireType {tag & 7}") from None
        if not number:
            raise DocumentError("proto: illegal tag 0")
        if wire is WireType.VARINT:
            value, place = _varint(data, place)
            yield number, wire, value
            continue
        size = _SIZES.get(wire)
        if size is None:
            size, place = _varint(data, place)
        if size > len(data) - place:
            raise DocumentError("unexpected EOF")
        yield number, wire, data[place : place + size]
        place += size


def packed(data: bytes) -> Iterator[int]:
    """Yield the numbers of a packed list."""
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value


def signed(value: int) -> int:
    """Return a number as Go's signed integers have it.

    >>> signed(2**64 - 1), signed(5)
    (-1, 5)
    """
    return value - (_SIGN << 1) if value & _SIGN else value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_LONGEST_VARINT):
        if place >= len(data):
            raise DocumentError("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place
    raise DocumentError("proto: integer overflow")


def write_field(number: int, data: bytes) -> bytes:
    r"""Return a field of bytes, such as a text or a message.

    >>> write_field(1, b"2.0")
    b'\n\x032.0'
    """
    return _write_varint(number << 3 | WireType.BYTES) + _write_varint(len(data)) + data


def _write_varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
