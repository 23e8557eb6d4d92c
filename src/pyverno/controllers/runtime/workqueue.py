"""A work queue of keys: equal keys are merged, a key is never worked on twice at a time, failures back off.

The queue has the semantics of client-go's `workqueue`: a key added while it is being worked on is handed out again
afterwards. All methods belong to the event loop's thread.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["Backoff", "Clock", "LoopClock", "Timer", "WorkQueue", "sleep"]

_CHANCE: Final = random.SystemRandom()
_MAX_DEPTH: Final = 100_000
_MAX_EXPONENT: Final = 64
_URGENT_IN_A_ROW: Final = 4
Key = TypeVar("Key", bound=Hashable)


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call."""
        ...


class Clock(Protocol):
    """A monotonic clock, in seconds."""

    def now(self) -> float:
        """Return the present time."""
        ...

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Schedule a call at a time."""
        ...


class LoopClock:
    """The clock of the running event loop."""

    def now(self) -> float:
        """Return the present time."""
        return asyncio.get_running_loop().time()

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        """Schedule a call at a time."""
        return asyncio.get_running_loop().call_at(when, call)


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait for some seconds of a clock."""
    over = asyncio.Event()
    timer = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays before retries: `first` seconds, doubled with each failure up to `longest`, spread by `jitter`.

    >>> steady = Backoff(first=0.5, longest=4, jitter=0)
    >>> [steady.delay(failures) for failures in (1, 2, 3, 4, 5)]
    [0.5, 1.0, 2.0, 4.0, 4]
    """

    first: float = 0.2
    longest: float = 60.0
    jitter: float = 0.5

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        steady = min(self.first * 2.0 ** min(failures - 1, _MAX_EXPONENT), self.longest)
        if not self.jitter:
            return steady
        return steady * _CHANCE.uniform(1 - self.jitter, 1 + self.jitter)


@dataclass(slots=True)
class _Delayed:
    """A key that is added later; `is_pending` when that is work left to do rather than a time to look again."""

    when: float
    timer: Timer
    is_pending: bool
    is_urgent: bool = False


class WorkQueue(Generic[Key]):
    """Keys that wait for a worker, urgent ones first; a worker takes one with `get` and returns it with `done`.

    `max_depth` bounds the keys that wait or are delayed: `add` refuses further ones, and the caller's resync brings
    them back.
    """

    def __init__(
        self, *, backoff: Backoff | None = None, max_depth: int = _MAX_DEPTH, clock: Clock | None = None
    ) -> None:
        """Start empty."""
        self._backoff = backoff or Backoff()
        self._max_depth = max_depth
        self._clock = clock or LoopClock()
        self._ready: deque[Key] = deque()
        self._urgent: OrderedDict[Key, None] = OrderedDict()
        self._urgent_in_a_row = 0
        self._dirty: set[Key] = set()
        self._in_work: dict[Key, bool] = {}
        self._delayed: dict[Key, _Delayed] = {}
        self._failures: dict[Key, int] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        """The number of keys that wait or are delayed."""
        return len(self._dirty | self._delayed.keys())

    @property
    def failures(self) -> Mapping[Key, int]:
        """The consecutive failures of each key."""
        return self._failures

    @property
    def is_idle(self) -> bool:
        """Return whether no work is left: keys that only wait for a time to be looked at again do not count."""
        return not (
            self._dirty or self._in_work or self._failures or any(each.is_pending for each in self._delayed.values())
        )

    def add(self, key: Key, *, is_urgent: bool = False) -> bool:
        """Add a key, or make one that waits urgent; False when the queue is full."""
        if key not in self._dirty and not self._has_room(key):
            return False
        self._put(key, is_urgent=is_urgent)
        return True

    def add_after(self, key: Key, seconds: float, *, is_pending: bool = False, is_urgent: bool = False) -> bool:
        """Add a key after a delay, unless it is due earlier already; False when the queue is full."""
        if seconds <= 0:
            return self.add(key, is_urgent=is_urgent)
        when, known = self._clock.now() + seconds, self._delayed.get(key)
        if known is not None and known.when <= when:
            known.is_pending = known.is_pending or is_pending
            known.is_urgent = known.is_urgent or is_urgent
            return True
        if known is None and not self._has_room(key):
            return False
        if known is not None:
            known.timer.cancel()
            is_pending, is_urgent = is_pending or known.is_pending, is_urgent or known.is_urgent
        timer = self._clock.call_at(when, lambda: self._ripen(key))
        self._delayed[key] = _Delayed(when, timer, is_pending, is_urgent)
        return True

    def retry(self, key: Key) -> float:
        """Count a failure of a key in work and add it again after the backoff's delay, which is returned."""
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        seconds = self._backoff.delay(failures)
        self.postpone(key, seconds)
        return seconds

    def postpone(self, key: Key, seconds: float) -> None:
        """Add a key in work again after a delay, as urgent as it was."""
        self.add_after(key, seconds, is_pending=True, is_urgent=self._in_work.get(key, False))

    def forget(self, key: Key) -> None:
        """Reset the failures of a key."""
        self._failures.pop(key, None)

    async def get(self) -> Key:
        """Wait for a key and take it; its delayed additions are dropped."""
        while (key := self._next()) is None:
            self._filled.clear()
            await self._filled.wait()
        self._in_work[key] = key in self._urgent
        self._urgent.pop(key, None)
        self._dirty.discard(key)
        delayed = self._delayed.pop(key, None)
        if delayed is not None:
            delayed.timer.cancel()
        return key

    def done(self, key: Key) -> None:
        """Mark a taken key as done; it is queued again if it was added meanwhile."""
        self._in_work.pop(key, None)
        if key in self._dirty:
            if key not in self._urgent:
                self._ready.append(key)
            self._filled.set()

    def close(self) -> None:
        """Cancel all delayed keys."""
        for each in self._delayed.values():
            each.timer.cancel()
        self._delayed.clear()

    def _has_room(self, key: Key) -> bool:
        if key in self._delayed or key in self._failures:
            return True
        # a key that waits and is delayed counts once; counting those takes time, and matters near the limit only
        return len(self._dirty) + len(self._delayed) < self._max_depth or len(self) < self._max_depth

    def _ripen(self, key: Key) -> None:
        delayed = self._delayed.pop(key)
        self._put(key, is_urgent=delayed.is_urgent)  # it had its room while it was delayed

    def _put(self, key: Key, *, is_urgent: bool) -> None:
        is_new = key not in self._dirty
        self._dirty.add(key)
        if is_urgent:
            self._urgent[key] = None
        elif is_new and key not in self._in_work:
            self._ready.append(key)
        self._filled.set()

    def _next(self) -> Key | None:
        """Return an urgent key, or the one that waits longest: after some urgent ones it has its turn."""
        if self._urgent_in_a_row < _URGENT_IN_A_ROW or not self._ready:
            urgent = next((key for key in self._urgent if key not in self._in_work), None)
            if urgent is not None:
                self._urgent_in_a_row += 1
                return urgent
        self._urgent_in_a_row = 0
        while self._ready:
            key = self._ready.popleft()
            if key in self._dirty and key not in self._in_work:  # not one that was urgent, and had its turn
                return key
        return next((key for key in self._urgent if key not in self._in_work), None)
