"""The wire format."""

from __future__ import annotations

import pytest

from kubesandbox.protobuf.wire import WireType, fields, packed, signed
from pyverno.errors import DocumentError


def test_fields_are_read_in_order() -> None:
    """Numbers, bytes, and numbers of fixed size."""
    data = b"\x08\x96\x01" + b"\x12\x02hi" + b"\x19" + b"\1" * 8 + b"\x25" + b"\2" * 4
    assert [
        (1, WireType.VARINT, 150),
        (2, WireType.BYTES, b"hi"),
        (3, WireType.FIXED64, b"\1" * 8),
        (4, WireType.FIXED32, b"\2" * 4),
    ] == list(fields(data))


@pytest.mark.parametrize("data", [b"\x08", b"\x12\x05hi", b"\x19\x01", b"\x0b", b"\x00", b"\xff" * 11])
def test_what_ends_too_early_or_makes_no_sense_is_an_error(data: bytes) -> None:
    """Truncated or malformed input raises an error."""
    with pytest.raises(DocumentError):
        list(fields(data))


def test_numbers_may_be_packed() -> None:
    """Packed numbers follow each other without tags."""
    assert [1, 150, 2] == list(packed(b"\x01\x96\x01\x02"))


def test_numbers_have_signs() -> None:
    """Numbers are 64-bit two's complement."""
    assert [-1, 0, 2**63 - 1, -(2**63)] == [signed(value) for value in (2**64 - 1, 0, 2**63 - 1, 2**63)]
