"""Writes DER: just enough for certificate extensions and time stamps."""

from __future__ import annotations

from datetime import datetime

__all__ = ["context", "generalized_time", "integer", "null", "octets", "oid", "sequence", "set_of", "utf8", "value"]


def value(tag: int, content: bytes) -> bytes:
    """Return a value with its tag and length."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def sequence(*parts: bytes) -> bytes:
    """Return a SEQUENCE."""
    return value(0x30, b"".join(parts))


def set_of(*parts: bytes) -> bytes:
    """Return a SET OF, sorted as DER demands."""
    return value(0x31, b"".join(sorted(parts)))


def context(number: int, content: bytes) -> bytes:
    """Return a constructed value of a context tag."""
    return value(0xA0 | number, content)


def octets(content: bytes) -> bytes:
    """Return an OCTET STRING."""
    return value(0x04, content)


def utf8(text: str) -> bytes:
    """Return a UTF8String."""
    return value(0x0C, text.encode())


def null() -> bytes:
    """Return NULL."""
    return value(0x05, b"")


def integer(number: int) -> bytes:
    """Return an INTEGER that is not negative."""
    return value(0x02, number.to_bytes(number.bit_length() // 8 + 1))


def generalized_time(moment: datetime) -> bytes:
    """Return a GeneralizedTime in UTC, to the second."""
    return value(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def oid(text: str) -> bytes:
    """Return an OBJECT IDENTIFIER."""
    first, second, *rest = (int(each) for each in text.split("."))
    content = bytearray()
    for number in (40 * first + second, *rest):
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.append(0x80 | number & 0x7F)
        content.extend(reversed(septets))
    return value(0x06, bytes(content))
