"""Rescans: every object once in an interval, spread evenly."""

from __future__ import annotations

from collections import Counter
from random import Random
from uuid import UUID

import pytest

from pyverno.controllers.reports.objects import pack_uid
from pyverno.controllers.reports.rescans import Rescans

_COUNT = 20_000


def _random_uids() -> list[bytes]:
    chance = Random(7)  # noqa: S311 - the same uids every time
    return [pack_uid(str(UUID(int=chance.getrandbits(128), version=4))) for _ in range(_COUNT)]


def _similar_uids() -> list[bytes]:
    """Return uids with equal endings, as version 1 UUIDs of one machine have."""
    return [pack_uid(f"{number:08x}-0000-1000-8000-0242ac110002") for number in range(_COUNT)]


@pytest.mark.parametrize("seconds", [0.5, 7.0, 60.0, 3600.0, 86_400.0])
def test_turns_fill_the_interval(seconds: float) -> None:
    """Each object has one turn in an interval, so it is evaluated once."""
    rescans = Rescans.of_interval(seconds)
    assert seconds == pytest.approx(rescans.turns * rescans.pause)


@pytest.mark.parametrize("uids", [_random_uids(), _similar_uids()], ids=["random", "similar"])
@pytest.mark.parametrize("seconds", [60.0, 3600.0])
def test_no_turn_has_many_objects(uids: list[bytes], seconds: float) -> None:
    """No turn has twice the average, and no turn is empty."""
    rescans = Rescans.of_interval(seconds)
    counted = Counter(rescans.turn_of(uid) for uid in uids)
    assert set(range(rescans.turns)) == set(counted)
    assert max(counted.values()) < 2 * _COUNT / rescans.turns
