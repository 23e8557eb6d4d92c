"""The loop of one controller: deduplication, retries, timers, and that nothing stops it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from kubesandbox.controllers.loop import Loop, backoff, itself
from kubesandbox.storage.store import Change, ChangeKind, Key, Stored
from pyverno.kube.status import conflict
from tests.unit.kubesandbox.controllers.cluster import HandClock

A, B = Key("things", "n", "a"), Key("things", "n", "b")


class Worker:
    """Follows its script and records the keys."""

    def __init__(self, work: Callable[[Key], Awaitable[float | None]]) -> None:
        self.seen: list[str] = []
        self.watches = {"things": itself}
        self._work = work

    async def reconcile(self, key: Key) -> float | None:
        self.seen.append(key.name)
        return await self._work(key)


async def nothing(_key: Key) -> float | None:
    return None


async def quiet(loop: Loop) -> None:
    while not loop.is_idle:
        await asyncio.sleep(0.001)


def test_a_key_that_waits_is_there_once() -> None:
    """Adding a waiting key again has no effect."""

    async def run() -> list[str]:
        worker = Worker(nothing)
        loop = Loop("test", worker, HandClock(), at_once=1)
        for key in (A, B, A, B, A):
            loop.add(key)
        await quiet(loop)
        return worker.seen

    # the first is taken off the queue at once, so it is worked on again
    assert ["a", "b", "a"] == asyncio.run(run())


def test_a_key_that_changes_while_it_is_worked_on_is_worked_on_again() -> None:
    """Two tasks never work on the same key at once."""

    async def run() -> tuple[list[str], int]:
        active, most = 0, 0

        async def work(key: Key) -> float | None:
            nonlocal active, most
            active += 1
            most = max(most, active)
            if len(worker.seen) < 3:
                loop.add(key)
            await asyncio.sleep(0)
            active -= 1
            return None

        worker = Worker(work)
        loop = Loop("test", worker, HandClock())
        loop.add(A)
        await quiet(loop)
        return worker.seen, most

    assert (["a", "a", "a"], 1) == asyncio.run(run())


def test_failures_are_tried_again_later_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """A conflict is not logged, any other error is; the loop continues."""

    async def run() -> list[str]:
        clock = HandClock()

        async def work(_key: Key) -> float | None:
            if len(worker.seen) == 1:
                raise conflict("", "things", "a")
            if len(worker.seen) == 2:
                raise ValueError("no luck")
            return None

        worker = Worker(work)
        loop = Loop("test", worker, clock)
        loop.add(A)
        await quiet(loop)
        for delay in (0.004, 0.002, 0.008, 0.003):
            clock.move(delay)
            await quiet(loop)
        return worker.seen

    with caplog.at_level(logging.INFO):
        assert ["a", "a", "a"] == asyncio.run(run())
    assert ["reconcile failed: test things/n/a"] == [record.getMessage() for record in caplog.records]
    assert [0.005, 0.01, 0.02, 60.0] == [backoff(count) for count in (1, 2, 3, 1000)]


def test_the_earlier_of_two_timers_counts() -> None:
    """A later one is forgotten, an earlier one takes its place."""

    async def run() -> list[int]:
        clock = HandClock()
        worker = Worker(nothing)
        loop = Loop("test", worker, clock)
        loop.add_later(A, 10)
        loop.add_later(A, 20)
        loop.add_later(A, 5)
        counts = []
        for _ in range(3):
            clock.move(6)
            await quiet(loop)
            counts.append(len(worker.seen))
        return counts

    assert [1, 1, 1] == asyncio.run(run())


def test_a_stopped_loop_leaves_nothing_behind() -> None:
    """Neither tasks nor timers, and what is added afterwards is ignored."""

    async def run() -> int:
        async def work(_key: Key) -> float | None:
            await asyncio.sleep(3600)
            return None

        loop = Loop("test", Worker(work), HandClock())
        loop.add(A)
        loop.add_later(B, 1)
        await asyncio.sleep(0)
        await loop.stop()
        loop.add(B)
        return len(asyncio.all_tasks())

    assert 1 == asyncio.run(run())


def test_the_key_of_a_change_is_that_of_its_object() -> None:
    """The key is the same for deleted objects."""
    change = Change(ChangeKind.DELETED, Stored(A, {}, 1), None)
    assert (A,) == itself(change)
