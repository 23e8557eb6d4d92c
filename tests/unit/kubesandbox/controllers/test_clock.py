"""Times as objects carry them, and calls in the future."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

from kubesandbox.controllers.clock import SystemClock, seconds_since, stamp, stamp_micro, time_of
from tests.unit.kubesandbox.controllers.cluster import START


def test_stamps_are_in_utc_and_read_back() -> None:
    """With microseconds where they are wanted."""
    there = datetime(2030, 1, 1, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00.000005Z") == (stamp(there), stamp_micro(there))
    assert START == time_of(stamp(START))
    assert (None, 0.0, 60.0) == (
        time_of("soon"),
        seconds_since("", START),
        seconds_since("2030-01-01T11:59:00Z", START),
    )


def test_a_call_comes_or_is_cancelled() -> None:
    """The call runs in the thread of the event loop."""

    async def run() -> list[str]:
        seen: list[str] = []
        clock = SystemClock()
        clock.later(0, lambda: seen.append("a"))
        clock.later(-1, lambda: seen.append("b"))
        clock.later(0, lambda: seen.append("c")).cancel()
        done = asyncio.Event()
        clock.later(0.001, done.set)
        await done.wait()
        return seen

    assert ["a", "b"] == sorted(asyncio.run(run()))
    assert UTC == SystemClock().now().tzinfo
    assert START == SystemClock(lambda: START).now()
