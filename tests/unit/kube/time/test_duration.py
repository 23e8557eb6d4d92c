"""Durations as Go has them."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.duration import (
    duration_from_seconds,
    duration_seconds,
    format_duration,
    parse_duration,
    try_duration,
)


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("1h30m", 5400 * 10**9, "1h30m0s"),
        ("-1.5ms", -1_500_000, "-1.5ms"),
        (".5s", 500_000_000, "500ms"),
        ("1µs", 1000, "1µs"),
        ("0", 0, "0s"),
        ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_go_durations_are_read_and_written(text, expected, written):
    """Whole nanoseconds."""
    assert expected == parse_duration(text) == try_duration(text)
    assert written == format_duration(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("x", 'time: invalid duration "x"'),
        ("", 'time: invalid duration ""'),
        ("1", 'time: missing unit in duration "1"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
        ("1_0s", 'time: unknown unit "_" in duration "1_0s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("٣s", 'time: invalid duration "\\xd9\\xa3s"'),
    ],
)
def test_errors_have_go_texts(text, message):
    """Users see them through time functions."""
    assert try_duration(text) is None
    with pytest.raises(ValueSyntaxError) as caught:
        parse_duration(text)
    assert message == str(caught.value)


def test_seconds_convert_both_ways():
    """Cut toward zero; out of range gives the smallest duration."""
    assert (1.5, 1_500_000_000, -(2**63)) == (
        duration_seconds(1_500_000_000),
        duration_from_seconds(1.5),
        duration_from_seconds(1e300),
    )
