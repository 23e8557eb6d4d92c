"""Texts of the TTL label."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.gotime import GoTime
from pyverno.kube.time.ttl import parse_ttl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5h", "1970-01-01T01:30:00Z"),
        ("-1h", "1969-12-31T23:00:00Z"),
        ("3d12h", "1970-01-04T12:00:00Z"),
        ("1 Week and 2 days", "1970-01-10T00:00:00Z"),
        ("2030-01-02T030405Z", "2030-01-02T03:04:05Z"),
        ("2030-01-02", "2030-01-02T00:00:00Z"),
    ],
)
def test_formats_are_tried_in_order(text, expected):
    """Durations count from the creation time."""
    assert expected == str(parse_ttl(text, GoTime(0)))


@pytest.mark.parametrize("text", ["", "soon", "12", "2030-13-01"])
def test_other_texts_are_refused(text):
    """They lead to a warning, never to a deletion."""
    with pytest.raises(ValueSyntaxError):
        parse_ttl(text, GoTime(0))
