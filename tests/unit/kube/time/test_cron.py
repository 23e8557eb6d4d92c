"""Cron lines in both forms."""

import pytest

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.cron import parse_cronexpr, parse_standard
from pyverno.kube.time.gotime import parse_rfc3339

START = "2024-01-31T23:59:59Z"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("*/5 * * * *", "2024-02-01T00:00:00Z"),
        ("0 0 29 2 *", "2024-02-29T00:00:00Z"),
        ("0 0 13 * 5", "2024-02-02T00:00:00Z"),
        ("@daily", "2024-02-01T00:00:00Z"),
        ("@every 1h30m", "2024-02-01T01:29:59Z"),
        ("CRON_TZ=Europe/Berlin 0 5 * * *", "2024-02-01T04:00:00Z"),
        ("0 0 31 2 *", None),
    ],
)
def test_standard_lines_give_their_due_times(line, expected):
    """Day of month and day of week are alternatives when both are restricted."""
    found = parse_standard(line).next(parse_rfc3339(START))
    assert expected == (str(found) if found else None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 0 L * *", "2024-02-29T00:00:00Z"),
        ("0 0 LW * *", "2024-02-29T00:00:00Z"),
        ("0 0 17W * *", "2024-02-16T00:00:00Z"),
        ("0 0 * * 5L", "2024-02-23T00:00:00Z"),
        ("0 0 * * mon#2", "2024-02-12T00:00:00Z"),
        ("*/15 30 4 * * * *", "2024-02-01T04:30:00Z"),
        ("0 0 1 1 * 2030", "2030-01-01T00:00:00Z"),
        ("0 0 1 1 * 1999", None),
        ("@weekly", "2024-02-04T00:00:00Z"),
    ],
)
def test_cronexpr_lines_give_their_due_times(line, expected):
    """Seconds, years, last days, workdays and numbered weekdays."""
    found = parse_cronexpr(line).next(parse_rfc3339(START))
    assert expected == (str(found) if found else None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@foo", "unrecognized descriptor: @foo"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1_0 * * * *", 'failed to parse int from 1_0: strconv.Atoi: parsing "1_0": invalid syntax'),
        ("TZ=../etc/passwd 0 0 * * *", "provided bad location ../etc/passwd: unknown time zone ../etc/passwd"),
    ],
)
def test_standard_errors(line, message):
    """Texts of robfig's parser."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_standard(line)
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("* * * *", "missing field(s)"),
        ("@every 1h", "missing field(s)"),
        ("x * * * *", "syntax error in minute field: 'x'"),
        ("9-5 * * * *", "invalid interval 9-5 (normalized to 9-5)"),
        ("0 0 * * 5#6", "syntax error in day-of-week field: '5#6'"),
    ],
)
def test_cronexpr_errors(line, message):
    """Texts of the library that runs the policies."""
    with pytest.raises(ValueSyntaxError) as caught:
        parse_cronexpr(line)
    assert message == str(caught.value)
