"""A circuit breaker is open beyond its limit, and while the count is unknown."""

from __future__ import annotations

import logging

import pytest

from pyverno.controllers.runtime.circuitbreaker import CircuitBreaker


@pytest.mark.parametrize(("count", "passes"), [(0, True), (2, True), (3, False), (None, False)])
def test_nothing_passes_beyond_the_limit_or_without_a_count(count: int | None, passes: bool) -> None:
    """A count at the limit passes; each check is reported."""
    told: list[tuple[str, bool]] = []
    breaker = CircuitBreaker("reports", lambda: count, max_count=2, on_check=lambda *each: told.append(each))
    assert passes is breaker.passes()
    assert [("reports", not passes)] == told


def test_the_log_has_a_line_when_it_opens_and_when_it_closes(caplog: pytest.LogCaptureFixture) -> None:
    """One line for each change, whatever the number of checks."""
    counts = [5, 5, None, 1, 1]
    breaker = CircuitBreaker("reports", lambda: counts.pop(0), max_count=2)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            breaker.passes()
    assert ["ERROR", "WARNING"] == [record.levelname for record in caplog.records]
