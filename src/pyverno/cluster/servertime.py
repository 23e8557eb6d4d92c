"""The time of an API server, taken from the Date headers of its responses; the wall clock of this machine is not used.

The API server's clock decides when objects are due, because it writes their timestamps. A Date header is a whole
second, cut off, so each response bounds the difference between that clock and the monotonic clock of this machine from
both sides. `now` is the greatest lower bound: it is never ahead of the server, and behind it by less than a second once
a few responses have arrived.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

from pyverno.value import dataclass

__all__ = ["ServerTime"]

_WINDOW_SECONDS: Final = 60.0
_STEP_SECONDS: Final = 2.0


@dataclass(slots=True)
class _Bounds:
    """Bounds of the difference between the two clocks that the responses of one period gave."""

    since: float
    lowest: float
    lower: float
    upper: float

    def add(self, lower: float, upper: float) -> None:
        self.lowest = min(self.lowest, lower)
        self.lower = max(self.lower, lower)
        self.upper = min(self.upper, upper)


class ServerTime:
    """Estimates the server's clock from below; all methods belong to one thread, except `now`.

    Bounds that contradict each other come from a clock that was set, or from several servers whose clocks differ: for
    one to two periods of `window` seconds the slowest of them counts then.

    >>> clock = ServerTime(monotonic=lambda: 5.0)
    >>> clock.note("Thu, 01 Jan 1970 00:01:40 GMT", 4.0)
    >>> clock.now()
    100.0
    """

    def __init__(self, *, window: float = _WINDOW_SECONDS, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Take the seconds for which a response counts, and the monotonic clock of this machine."""
        self._window = window
        self._monotonic = monotonic
        self._periods: tuple[_Bounds, ...] = ()
        self._offset: float | None = None
        self._parsed: tuple[str, float | None] = ("", None)
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call the listener when the time becomes known, and when it moves by more than two seconds."""
        self._listeners.append(listener)

    def now(self) -> float | None:
        """Return the seconds since 1970 that the server's clock shows at least; None before its first response."""
        offset = self._offset
        return None if offset is None else self._monotonic() + offset

    def note(self, date: str, sent: float) -> None:
        """Take the Date header of a response that has just arrived; `sent` is when its request was sent, monotonic."""
        moment = self._read(date)
        if moment is None:
            return
        received = self._monotonic()
        lower, upper = moment - received, moment + 1 - sent
        periods = self._periods
        if not periods or received - periods[-1].since >= self._window:
            recent = periods[-1:] if periods and received - periods[-1].since < 2 * self._window else ()
            self._periods = (*recent, _Bounds(received, lower, lower, upper))
        else:
            periods[-1].add(lower, upper)
        self._set(self._estimate())

    def _estimate(self) -> float:
        lower = max(each.lower for each in self._periods)
        upper = min(each.upper for each in self._periods)
        return lower if lower <= upper else min(each.lowest for each in self._periods)

    def _set(self, offset: float) -> None:
        before, self._offset = self._offset, offset
        if before is None or abs(offset - before) > _STEP_SECONDS:
            for listener in self._listeners:
                listener()

    def _read(self, date: str) -> float | None:
        """Return the seconds that a header means; the responses of one second share its text."""
        if date != self._parsed[0]:
            try:
                found: float | None = parsedate_to_datetime(date).timestamp()
            except (ValueError, TypeError, OverflowError):
                found = None
            self._parsed = date, found
        return self._parsed[1]
