"""How much an object has grown: new values count, shared and moved ones do not."""

from __future__ import annotations

import pytest

from pyverno.errors import BudgetExceededError
from pyverno.kube.json import JSON
from pyverno.kube.meter import UNMETERED
from pyverno.kube.patch.growth import growth
from pyverno.lang.runtime import Budget

TEXT = "x" * 1000
MOST = 500


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": TEXT}, {"a": TEXT}, 2),
        ({"a": [TEXT]}, {"a": [TEXT], "b": "new"}, 10),
        ({"a": 1}, {"a": None}, 4),
        ({"a": TEXT}, {}, 2),
        ([TEXT], ["head", TEXT], 6),
        ([1, 2], [3, 1, 2], 8),
        ({"a": TEXT}, {"b": TEXT}, 0),
        ("a", TEXT, 999),
    ],
)
def test_what_is_new_counts(before: JSON, after: JSON, expected: int) -> None:
    """The bytes of new values, unless the whole did not grow as much."""
    assert expected == growth(before, after, MOST, UNMETERED)


def test_what_is_written_many_times_counts_as_often() -> None:
    """A list of lists of lists, each held once in memory: counted until it is clear that it is too much."""
    value: JSON = [TEXT] * 10
    for _ in range(100):
        value = [value] * 10
    assert MOST < growth({}, {"a": value}, MOST, UNMETERED) < 10 * MOST


def test_counting_is_charged() -> None:
    """Every eight values cost a step."""
    with pytest.raises(BudgetExceededError):
        growth([], list(range(100_000)), 1 << 30, Budget(steps=10_000))
