"""Claims are compared by value, and cases have names that stay."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.outcome import Case, Claim, content_id, distinct


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, False, True),
        (None, False, False),
        ([1, {"a": [True]}], (1, {"a": [True]}), True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (["a"], "a", False),
    ],
)
def test_claims_compare_json_by_value(one: Any, other: Any, expected: bool) -> None:
    """Numbers compare by value, truth values are themselves only, tuples are lists."""
    assert expected == Claim(one, other).holds


def test_an_id_depends_on_content_only() -> None:
    """The order of keys does not matter, a value does."""
    assert content_id("t", {"a": 1, "b": 2}) == content_id("t", {"b": 2, "a": 1})
    assert content_id("t", {"a": 1}) != content_id("t", {"a": 2})


def test_equal_cases_get_numbers() -> None:
    """Ids are unique within a run."""
    cases = [Case("b", "p", "x", 1), Case("b", "p", "x", 1), Case("b", "p", "y", 2)]
    assert ["x", "x~2", "y"] == [case.id for case in distinct(cases)]
