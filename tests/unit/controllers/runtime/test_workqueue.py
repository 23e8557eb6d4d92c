"""Each key is worked on once and by one worker at a time, and again later when it fails."""

from __future__ import annotations

import asyncio

from pyverno.controllers.runtime.workqueue import Backoff, WorkQueue, sleep
from tests.support.controllers import FakeClock, rest

STEADY = Backoff(first=1, longest=4, jitter=0)


def test_equal_keys_are_one() -> None:
    """A key that is added several times is taken once."""

    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue()
        assert [True] * 3 == [queue.add(key) for key in ("a", "b", "a")]
        assert 2 == len(queue)
        assert ["a", "b"] == [await queue.get(), await queue.get()]
        assert 0 == len(queue)

    asyncio.run(run())


def test_a_key_in_work_comes_again_only_afterwards() -> None:
    """Two workers never have the same key at a time, and no addition is lost."""

    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        key = await queue.get()
        queue.add("a")
        other = asyncio.create_task(queue.get())
        await rest()
        assert not other.done()
        queue.done(key)
        assert "a" == await other
        queue.done("a")
        assert queue.is_idle

    asyncio.run(run())


def test_urgent_keys_come_first() -> None:
    """Keys may become urgent while they wait, while they are delayed and while they are worked on."""

    async def run() -> None:
        clock = FakeClock()
        queue: WorkQueue[str] = WorkQueue(clock=clock)
        for key in ("a", "b", "c"):
            queue.add(key)
        queue.add("c", is_urgent=True)
        queue.add_after("d", 1, is_urgent=True)
        await clock.advance(1)
        assert ["c", "d"] == [await queue.get(), await queue.get()]
        queue.add("d", is_urgent=True)
        queue.add("c")
        assert "a" == await queue.get()
        queue.done("c")
        queue.done("d")
        assert ["d", "b", "c"] == [await queue.get() for _ in range(3)]
        assert 0 == len(queue)

    asyncio.run(run())


def test_an_urgent_key_stays_urgent_when_it_is_retried_or_postponed() -> None:
    """Otherwise it would come back behind all keys that are not urgent."""

    async def run() -> None:
        clock = FakeClock()
        queue: WorkQueue[str] = WorkQueue(backoff=STEADY, clock=clock)
        for key in ("failed", "postponed"):
            queue.add(key, is_urgent=True)
            await queue.get()
        queue.add("sweep")
        queue.retry("failed")
        queue.postpone("postponed", 1)
        for key in ("failed", "postponed"):
            queue.done(key)
        await clock.advance(1)
        assert ["failed", "postponed", "sweep"] == [await queue.get() for _ in range(3)]
        queue.postpone("sweep", 1)
        queue.done("sweep")
        await clock.advance(1)
        queue.add("urgent", is_urgent=True)
        assert ["urgent", "sweep"] == [await queue.get() for _ in range(2)]

    asyncio.run(run())


def test_urgent_keys_do_not_starve_the_others() -> None:
    """Every fifth turn goes to the key that has waited longest."""

    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("sweep")
        taken: list[str] = []
        for number in range(10):
            queue.add(f"change-{number}", is_urgent=True)
            queue.add(f"change-{number}-more", is_urgent=True)
            taken.append(key := await queue.get())
            queue.done(key)
        assert 4 == taken.index("sweep")

    asyncio.run(run())


def test_a_full_queue_refuses_new_keys_only() -> None:
    """Waiting and failed keys keep their places."""

    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue(max_depth=2, backoff=STEADY, clock=FakeClock())
        assert (True, True, False) == (queue.add("a"), queue.add_after("b", 1), queue.add("c"))
        assert (True, True) == (queue.add("a"), queue.add("b"))
        key = await queue.get()
        assert queue.add("c")
        queue.retry(key)
        assert key in queue.failures
        assert queue.add(key)

    asyncio.run(run())


def test_of_two_delays_the_earlier_counts() -> None:
    """The later delay does not bring the key again."""

    async def run() -> None:
        clock = FakeClock()
        queue: WorkQueue[str] = WorkQueue(clock=clock)
        queue.add_after("a", 10)
        queue.add_after("a", 2, is_pending=True)
        queue.add_after("a", 5)
        assert (1, False) == (len(queue), queue.is_idle)
        await clock.advance(2)
        assert "a" == await queue.get()
        queue.done("a")
        await clock.advance(100)
        assert (0, True) == (len(queue), queue.is_idle)

    asyncio.run(run())


def test_a_time_to_look_again_is_no_work_left() -> None:
    """A schedule for tomorrow leaves the controller idle; a retry does not."""

    async def run() -> None:
        clock = FakeClock()
        queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=STEADY)
        queue.add_after("a", 3600)
        assert queue.is_idle
        queue.retry("b")
        assert not queue.is_idle

    asyncio.run(run())


def test_delays_of_retries_grow_to_a_bound_and_begin_anew_after_success() -> None:
    """Each failure doubles the delay up to the bound."""

    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue(clock=FakeClock(), backoff=STEADY)
        assert [1, 2, 4, 4] == [queue.retry("a") for _ in range(4)]
        queue.forget("a")
        assert 1 == queue.retry("a")

    asyncio.run(run())


def test_jitter_spreads_retries() -> None:
    """Keys that fail at the same time are not retried at the same time."""
    delays = {Backoff(first=1, jitter=0.5).delay(1) for _ in range(20)}
    assert len(delays) > 1
    assert all(0.5 <= delay <= 1.5 for delay in delays)


def test_many_failures_in_a_row_keep_the_longest_delay() -> None:
    """The exponent does not overflow."""
    assert 4 == STEADY.delay(10_000)


def test_sleep_ends_with_its_clock() -> None:
    """A test can advance the clock instead of waiting."""

    async def run() -> None:
        clock = FakeClock()
        sleeping = asyncio.create_task(sleep(clock, 60))
        await rest()
        await clock.advance(59)
        assert not sleeping.done()
        await clock.advance(1)
        assert sleeping.done()

    asyncio.run(run())
