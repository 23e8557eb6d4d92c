"""Limits on time that others wait for: how long a review may compute, and how long it may compile what it runs.

The limits of policies allow a review to compute for a second (10,000,000 units of CEL), which is too long for a thread
that others wait for. Fast tiers are compiled on first use, which takes half a second for a few hundred policies: with a
deadline that work is spread over several reviews. This module must never turn the end of time into a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from pyverno.lang.runtime import MAX_CONTEXT_BYTES, Budget

__all__ = ["MAX_CONTEXT_BYTES", "CompileSlice", "TimeSliceBudget"]

_T = TypeVar("_T")

COMPILE_SECONDS: Final = 0.02
"""For how long a review with a deadline compiles fast tiers, besides the one that it has begun."""

_AT_HAND_SECONDS: Final = 0.00005
"""Shorter steps find a compiled rule; thousands of them must not use up a slice."""


class CompileSlice:
    """The time that one review may spend on compiling fast tiers; what is left waits for the next review.

    The first piece is always made, so that every review brings the work forward.

    >>> CompileSlice(seconds=0).make(lambda: 1)
    1
    """

    __slots__ = ("_clock", "_left", "is_over")

    def __init__(self, seconds: float = COMPILE_SECONDS, *, clock: Callable[[], float] = time.perf_counter) -> None:
        """Take the length of the slice; `inf` never ends."""
        self._left = seconds
        self._clock = clock
        self.is_over = False

    def make(self, make: Callable[[], _T]) -> _T | None:
        """Return what a function makes, or None when the slice is over."""
        if self.is_over:
            return None
        began = self._clock()
        try:
            return make()
        finally:
            taken = self._clock() - began
            if taken > _AT_HAND_SECONDS:
                self._left -= taken
                self.is_over = self._left <= 0


class TimeSliceBudget(Budget):
    """A budget that raises `stop` once `seconds` seconds have passed since it was made.

    `stop` must be no `Exception`, because the engine turns those into results of rules. Time is looked at as often as
    for the deadline of any budget.

    >>> TimeSliceBudget(KeyboardInterrupt, seconds=60).check_deadline()
    """

    __slots__ = ("_first", "_stop", "_until")

    def __init__(
        self,
        stop: type[BaseException],
        *,
        seconds: float,
        deadline: float | None = None,
        context_bytes: int = MAX_CONTEXT_BYTES,
    ) -> None:
        super().__init__(deadline=deadline, context_bytes=context_bytes)
        self._stop = stop
        self._until = time.monotonic() + seconds
        self._first = self._until if deadline is None or deadline > self._until else deadline

    def check_deadline(self) -> None:
        """Raise when the moment or the deadline has passed."""
        now = time.monotonic()
        if now <= self._first:
            return
        if now > self._until:
            raise self._stop
        Budget.check_deadline(self)
