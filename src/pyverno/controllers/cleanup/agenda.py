"""When objects are due: a heap of times, and one timer for the earliest of them."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from pyverno.controllers.runtime.workqueue import Clock, LoopClock, Timer

__all__ = ["Agenda"]

_LONGEST_SECONDS: Final = 60.0
"""How long the agenda sleeps at most: the server's clock may move faster than this machine's."""

_UNKNOWN_SECONDS: Final = 1.0
_LEAST_SECONDS: Final = 0.005
_AGAIN_SECONDS: Final = 10.0
"""How long a key waits whose receiver ran into a bug."""

_STALE_SHARE: Final = 2
Key = TypeVar("Key", bound=Hashable)

log = logging.getLogger("pyverno.cleanup")


class Agenda(Generic[Key]):
    """Calls `due` with every key whose time has come; at most `max_due` of them are out until `done`.

    An entry takes a few words of memory, where a timer of the event loop would take half a kilobyte. All methods belong
    to the event loop's thread.
    """

    def __init__(
        self,
        now: Callable[[], float | None],
        due: Callable[[Key], None],
        *,
        max_due: int = 1000,
        clock: Clock | None = None,
    ) -> None:
        """Take the time that entries are compared with (None = unknown), the receiver, and the clock of the timer."""
        self._now = now
        self._due = due
        self._max_due = max_due
        self._clock = clock or LoopClock()
        self._times: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._out: set[Key] = set()
        self._timer: Timer | None = None
        self._wakes_at = 0.0

    def __len__(self) -> int:
        return len(self._times)

    def put(self, key: Key, when: float) -> None:
        """Have a key called at a time, and at no other."""
        if self._times.get(key) == when:
            return
        self._times[key] = when
        heapq.heappush(self._heap, (when, key))
        if len(self._heap) > _STALE_SHARE * len(self._times) + 64:
            self._heap = [(when, key) for key, when in self._times.items()]
            heapq.heapify(self._heap)
        self._arm()

    def discard(self, key: Key) -> None:
        """Forget a key."""
        self._times.pop(key, None)

    def discard_all(self, is_meant: Callable[[Key], bool]) -> None:
        """Forget certain keys."""
        self._times = {key: when for key, when in self._times.items() if not is_meant(key)}

    def done(self, key: Key) -> None:
        """Take a key back that was called."""
        self._out.discard(key)
        self._arm()

    def clear(self) -> None:
        """Forget everything."""
        self._times, self._heap, self._out = {}, [], set()
        self._disarm()

    def wake(self) -> None:
        """Compare with the time again: it may have moved."""
        self._disarm()
        self._arm()

    def _arm(self) -> None:
        """See to it that the timer is there for the earliest entry."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap or len(self._out) >= self._max_due:
            return
        now = self._now()
        left = _UNKNOWN_SECONDS if now is None else self._heap[0][0] - now
        at = self._clock.now() + min(max(left, _LEAST_SECONDS), _LONGEST_SECONDS)
        if self._timer is None or at < self._wakes_at:
            self._sleep_until(at)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        try:
            self._call_due()
            self._arm()
        except Exception:  # a timer that is not set again would end all the others
            log.exception("the times of objects could not be compared")
            self._sleep_until(self._clock.now() + _UNKNOWN_SECONDS)

    def _call_due(self) -> None:
        now = self._now()
        while now is not None and self._heap and len(self._out) < self._max_due:
            when, key = self._heap[0]
            if when > now and self._times.get(key) == when:
                break
            heapq.heappop(self._heap)
            if self._times.get(key) == when:
                del self._times[key]
                self._out.add(key)
                try:
                    self._due(key)
                except Exception:
                    log.exception("an object that is due could not be handed over")
                    self._out.discard(key)
                    self.put(key, now + _AGAIN_SECONDS)

    def _sleep_until(self, at: float) -> None:
        self._disarm()
        self._timer, self._wakes_at = self._clock.call_at(at, self._fire), at
