"""Reads DER, the encoding of certificates, just far enough to hand out pieces byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["INTEGER", "SEQUENCE", "Element", "elements", "oid"]

INTEGER: Final = 0x02
SEQUENCE: Final = 0x30


class Element(NamedTuple):
    """One value: its tag byte, its content, and all its bytes."""

    tag: int
    content: bytes
    raw: bytes


def elements(data: bytes) -> Iterator[Element]:
    """Yield consecutive values; raises ValueError when a length does not fit.

    >>> [element.content for element in elements(bytes([2, 1, 7, 5, 0]))]
    [b'\\x07', b'']
    """
    position = 0
    while position < len(data):
        start, tag = position, data[position]
        length = data[position + 1] if position + 1 < len(data) else -1
        position += 2
        if length >= 0x80:
            size = length & 0x7F
            if not 0 < size <= 4 or position + size > len(data):
                raise ValueError("malformed length")
            length = int.from_bytes(data[position : position + size])
            position += size
        if length < 0 or position + length > len(data):
            raise ValueError("malformed length")
        yield Element(tag, data[position : position + length], data[start : position + length])
        position += length


def oid(content: bytes) -> list[int]:
    """Return the numbers of an object identifier; raises ValueError when it is cut off.

    >>> oid(bytes([0x55, 4, 6]))
    [2, 5, 4, 6]
    """
    numbers: list[int] = []
    number, is_open = 0, True
    for byte in content:
        number = number << 7 | byte & 0x7F
        is_open = bool(byte & 0x80)
        if not is_open:
            numbers.append(number)
            number = 0
    if is_open:
        raise ValueError("malformed object identifier")
    first = min(numbers[0] // 40, 2)
    return [first, numbers[0] - 40 * first, *numbers[1:]]
