"""Times in offsets, layouts and from the world's clock."""

import pytest

from pyverno.errors import EvaluationError
from tests.unit.lang.jmespath.hosts import evaluate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time_now()", "2023-11-14T22:13:20Z"),
        ("time_since('', '2023-11-14T22:13:10Z', '')", "10s"),
        ("time_add('2021-01-02T15:04:05Z', '-1h')", "2021-01-02T14:04:05Z"),
        ("time_parse('Mon Jan 02 15:04:05 -0700 2006', 'Sat Jan 02 15:04:05 -0700 2021')", "2021-01-02T15:04:05-07:00"),
        ("time_truncate('2021-01-02T17:08:00+05:30', '24h')", "2021-01-02T05:30:00+05:30"),
        ("time_truncate('2021-01-07T17:08:00Z', '168h')", "2021-01-04T00:00:00Z"),
        ("time_truncate('2021-01-02T17:08:00Z', '-1h')", "2021-01-02T17:08:00Z"),
        ("time_before('2021-01-02T15:04:05Z', '2021-01-02T15:04:05.1Z')", True),
        ("time_between('2021-01-01T00:00:00Z', '2021-01-01T00:00:00Z', '2021-01-03T00:00:00Z')", False),
        ("time_now('ignored')", "2023-11-14T22:13:20Z"),
    ],
)
def test_times(text, expected):
    """Instants are compared, offsets kept."""
    assert expected == evaluate(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time_parse('1', 'x')", 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "time_parse('1', '99999999999999999999')",
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
        ),
        ("time_utc('x')", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ],
)
def test_what_is_no_time(text, message):
    """The errors have Go's texts."""
    with pytest.raises(EvaluationError) as caught:
        evaluate(text)
    assert message == caught.value.detailed
