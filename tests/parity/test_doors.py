"""The same facts get the same results through every front door, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.case import Case, all_cases
from tests.parity.doors import DOORS, blind_spot, library

PAIRS = [
    pytest.param(door, case, id=f"{door}:{case.name}")
    for case in all_cases()
    for door in DOORS
    if not blind_spot(door, case)
]


@pytest.mark.parametrize(("door", "case"), PAIRS)
def test_every_front_door_answers_as_the_library_does(door: str, case: Case, tmp_path: Path) -> None:
    """Results and effects of every object are those of the library, in the same order."""
    expected, actual = library(case), DOORS[door](case, tmp_path)
    if not case.compilation.policies:
        # nothing to ask: a command line leaves the objects out
        assert [] == [entry for entry in (*expected, *actual) if any(entry)]
        return
    assert expected == actual


@pytest.mark.parametrize("door", sorted(DOORS))
def test_every_door_is_compared_on_many_cases(door: str) -> None:
    """No door is left out by its blind spots."""
    seen = [case for case in all_cases() if not blind_spot(door, case)]
    assert len(seen) >= 40
