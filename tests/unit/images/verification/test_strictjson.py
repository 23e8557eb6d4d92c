"""JSON of signed documents is read without leniency."""

from __future__ import annotations

import pytest

from pyverno.errors import VerificationError
from pyverno.images.verification.strictjson import read_json


@pytest.mark.parametrize("data", [rb'"\ud800"', rb'"\uDFFF"', rb'{"a": ["\uD83Dx"]}', b'"\xed\xa0\x80"'])
def test_half_of_a_surrogate_pair_is_no_text(data: bytes) -> None:
    """Other parsers replace it by another character, and read another document."""
    with pytest.raises(VerificationError, match="the payload is not valid JSON"):
        read_json(data, "the payload")


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (rb'"\u2014"', "\u2014"),
        (rb'"\uD83D\ude00"', "\U0001f600"),
        (rb'"\ud7ff"', "\ud7ff"),
        (rb'"\\ud800"', r"\ud800"),
    ],
)
def test_escapes_that_are_characters_are_read(data: bytes, found: str) -> None:
    """The twin: whole pairs, characters near them, and escaped backslashes."""
    assert found == read_json(data, "the payload")


def test_a_document_of_too_many_values_is_not_parsed() -> None:
    """Each empty list of three bytes would take 64 in memory; long texts and a usual number of values are read."""
    with pytest.raises(VerificationError, match="the payload has more than 1000000 values"):
        read_json(b"[" + b"[]," * 1_000_000 + b"[]]", "the payload")
    assert "x" * 2_000_000 == read_json(b'"' + b"x" * 2_000_000 + b'"', "the payload")
