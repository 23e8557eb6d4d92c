"""Times as Go has them."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.gotime import RFC3339, GoTime, parse_rfc3339, parse_time


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        ("2006-01-02", "2021-12-02", "2021-12-02T00:00:00Z"),
        (RFC3339, "2021-01-02T15:04:05.123456789-07:00", "2021-01-02T15:04:05.123456789-07:00"),
        ("Jan _2 3:04PM 2006", "Feb  9 12:30AM 2024", "2024-02-09T00:30:00Z"),
        ("2006-002", "2024-060", "2024-02-29T00:00:00Z"),
        ("Mon, 02 Jan 06 15:04 MST", "Sat, 02 Jan 21 15:04 PST", "2021-01-02T15:04:00Z"),
        ("15:04:05 -0700 2006", "01:02:03 +0530 2020", "2020-01-01T01:02:03+05:30"),
    ],
)
def test_layouts_read_times(layout, text, expected):
    """Nanoseconds are kept exactly."""
    assert expected == str(parse_time(layout, text))


@pytest.mark.parametrize(
    ("layout", "text", "message"),
    [
        ("2006-01-02", "x", 'parsing time "x" as "2006-01-02": cannot parse "x" as "2006"'),
        ("2006-01-02", "2021-13-01", 'parsing time "2021-13-01": month out of range'),
        ("2006-01-02", "2021-02-30", 'parsing time "2021-02-30": day out of range'),
        ("2006-01-02", "2021-02-03 ", 'parsing time "2021-02-03 ": extra text: " "'),
        (
            RFC3339,
            "2021-01-02",
            'parsing time "2021-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
        (
            "2006",
            "٣٣٣٣",
            'parsing time "\\xd9\\xa3\\xd9\\xa3\\xd9\\xa3\\xd9\\xa3" as "2006": cannot parse '
            '"\\xd9\\xa3\\xd9\\xa3\\xd9\\xa3\\xd9\\xa3" as "2006"',
        ),
    ],
)
def test_errors_have_go_texts(layout, text, message):
    """They reach users through the time functions."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_time(layout, text)
    assert message == str(caught.value)


def test_times_are_written_by_layouts():
    """Every kind of element."""
    time = parse_rfc3339("2021-01-02T15:04:05.120-07:00")
    layout = "Monday January _2006 2 002 3PM .999 .0000 -0700 MST Z07:00"
    assert "Saturday January _2021 2 002 3PM .12 .1200 -0700 -0700 -07:00" == time.format(layout)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("2021-01-02T17:08:00Z", 3600, "2021-01-02T17:00:00Z"),
        ("2021-01-02T17:08:00+05:30", 86_400, "2021-01-02T05:30:00+05:30"),
        ("2021-01-02T17:08:00Z", 604_800, "2020-12-28T00:00:00Z"),
        ("2021-01-02T17:08:00Z", 0, "2021-01-02T17:08:00Z"),
    ],
)
def test_truncation_counts_from_the_zero_time(text, unit, expected):
    """Multiples since the year 1 in UTC."""
    assert expected == str(parse_rfc3339(text).truncate(unit * 10**9))


def test_instants_compare_across_offsets():
    """The offset is only how they are seen."""
    a, b = parse_rfc3339("2021-01-02T00:00:00Z"), parse_rfc3339("2021-01-02T01:00:00+01:00")
    assert a == b
    assert 0 == a.minus(b)
    assert 10**9 == a.plus(10**9).minus(b)
    assert "2021-01-02T00:00:00Z" == str(b.in_utc())
    assert 4 == GoTime(0).weekday
