"""Conditions: set, kept, taken away."""

from __future__ import annotations

from datetime import timedelta

from kubesandbox.controllers.conditions import (
    condition,
    find_condition,
    has_condition,
    set_condition,
    without_condition,
)
from tests.unit.kubesandbox.controllers.cluster import START


def test_the_time_of_transition_moves_with_the_status_only() -> None:
    """And a condition keeps its place."""
    old = [condition("A", "True", START, reason="X"), condition("B", "True", START)]
    later = START + timedelta(minutes=1)
    same = set_condition(old, condition("A", "True", later, reason="Y"))
    assert (["A", "B"], "2030-01-01T12:00:00Z") == ([item["type"] for item in same], same[0]["lastTransitionTime"])
    changed = set_condition(old, condition("A", "False", later))
    assert "2030-01-01T12:01:00Z" == changed[0]["lastTransitionTime"]


def test_conditions_are_found_by_type() -> None:
    """They are true only with the status `True`."""
    conditions = [condition("A", "False", START, reason="X", message="m")]
    assert not has_condition(conditions, "A")
    assert has_condition(conditions, "A", "False")
    assert ([], None) == (without_condition(conditions, "A"), find_condition(conditions, "B"))
    assert {"type", "status", "lastTransitionTime"} == set(condition("B", "True", START))
