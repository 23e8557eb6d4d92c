"""Time for controllers: the present time, and calls after a delay.

Nothing here may sleep or poll; tests use a clock that they move by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "Timer", "seconds_since", "stamp", "stamp_micro", "time_of"]


class Timer(Protocol):
    """A scheduled call, which can be cancelled."""

    def cancel(self) -> None:
        """Forget the call."""


class Clock(Protocol):
    """The time, and calls in the future."""

    def now(self) -> datetime:
        """Return the time in UTC."""

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call a function after a delay in seconds."""


class SystemClock:
    """The time of an event loop; `now` may replace the machine's clock."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        """Take the source of the current time."""
        self._now = now or (lambda: datetime.now(UTC))

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._now()

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call a function of the running loop's thread later."""
        return asyncio.get_running_loop().call_later(max(seconds, 0), call)


def stamp(time: datetime) -> str:
    """Format a time as in the metadata of objects.

    >>> stamp(datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    '2030-01-02T03:04:05Z'
    """
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp_micro(time: datetime) -> str:
    """Format a time with microseconds, as in Leases.

    >>> stamp_micro(datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    '2030-01-02T03:04:05.000678Z'
    """
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_of(text: str) -> datetime | None:
    """Parse a time of an object, None without one.

    >>> time_of("2030-01-02T03:04:05Z"), time_of("")
    (datetime.datetime(2030, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), None)
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def seconds_since(text: str, now: datetime) -> float:
    """Return the age of a timestamp in seconds, 0 without one."""
    then = time_of(text)
    return 0.0 if then is None else (now - then).total_seconds()
