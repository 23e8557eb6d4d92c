"""Long-lived objects are frozen in the garbage collector, and thawed when the rounds end."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from pyverno.controllers.runtime import gctuning
from pyverno.controllers.runtime.gctuning import keep_collections_short


class Ring:
    """An object in a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let only the rounds collect."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@asynccontextmanager
async def _rounds() -> AsyncIterator[None]:
    """Run a round whenever the block yields to the loop."""
    task = asyncio.ensure_future(keep_collections_short(0))
    await _pass(1)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _pass(rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


def _make_old(count: int) -> list[list[object]]:
    """Return objects that have survived so many collections that they are frozen."""
    made: list[list[object]] = [[] for _ in range(count)]
    for _ in range(gctuning._FEW + 1):
        gc.collect(1)
    return made


def test_rounds_end_with_everything_as_it_was() -> None:
    """Rounds freeze objects while they run and start all full collections; cancelling them restores the collector."""
    before = gc.get_threshold()

    async def work() -> tuple[int, tuple[int, int, int]]:
        rounds = asyncio.ensure_future(keep_collections_short())
        await asyncio.sleep(0)
        found = gc.get_freeze_count(), gc.get_threshold()
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
        return found

    frozen, thresholds = asyncio.run(work())
    assert frozen > 1000
    assert thresholds[2] >= 1_000_000
    assert gc.get_freeze_count() == 0
    assert before == gc.get_threshold()


def test_garbage_is_collected_by_the_next_round() -> None:
    """A cycle is freed whether it became garbage at once or lived through rounds, as those of connections do."""

    async def work() -> tuple[object, object]:
        async with _rounds():
            young = weakref.ref(Ring())
            await _pass(1)
            first = young()
            ring = Ring()
            frozen = gc.get_freeze_count()
            await _pass(3)
            assert frozen >= gc.get_freeze_count(), "objects that are in use for a moment are not frozen"
            old = weakref.ref(ring)
            del ring
            await _pass(1)
            return first, old()

    with _without_collector():
        assert (None, None) == asyncio.run(work())


@pytest.mark.parametrize("is_grown", [True, False])
def test_many_new_objects_are_frozen_without_a_full_collection(is_grown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of policies leaves them; garbage among them is freed five minutes later, if memory has grown by much."""
    monkeypatch.setattr(gctuning, "_GROWTH", 0.0 if is_grown else 1.0)

    async def work() -> tuple[bool, bool]:
        async with _rounds():
            ring = Ring()
            garbage = weakref.ref(ring)
            frozen = gc.get_freeze_count()
            kept = _make_old(3_000)
            del ring
            await _pass(1)
            assert gc.get_freeze_count() >= frozen + len(kept)
            await _pass(gctuning._ROUNDS - 2)
            before = garbage() is None
            await _pass(1)
            return before, garbage() is None

    with _without_collector():
        assert (False, is_grown) == asyncio.run(work())


def test_garbage_that_was_frozen_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the memory has doubled, and grown by more than a bound, all garbage is freed at once."""
    monkeypatch.setattr(gctuning, "_MANY", 10_000)

    async def work() -> tuple[bool, bool]:
        async with _rounds():
            ring = Ring()
            garbage = weakref.ref(ring)
            known = sys.getallocatedblocks()
            kept = [_make_old(known // 2)]
            del ring
            await _pass(1)
            before = garbage() is None
            kept.append(_make_old(known))
            await _pass(1)
            return before, garbage() is None

    with _without_collector():
        assert (False, True) == asyncio.run(work())
