"""A budget whose owner can only spare a moment: a review that computes for longer ends with an exception of the owner.

The limits of policies allow a review to compute for a second (10,000,000 units of CEL), which is too long for a thread
that others wait for. This module must never turn that exception into a result.
"""

from __future__ import annotations

import time

from pyverno.lang.runtime import MAX_CONTEXT_BYTES, Budget

__all__ = ["MAX_CONTEXT_BYTES", "TimeSliceBudget"]


class TimeSliceBudget(Budget):
    """A budget that raises `stop` once `patience` seconds have passed since it was made.

    `stop` must be no `Exception`, because the engine turns those into results of rules. Time is looked at as often as
    for the deadline of any budget.

    >>> ImpatientBudget(KeyboardInterrupt, patience=60).check_deadline()
    """

    __slots__ = ("_stop", "_until")

    def __init__(
        self,
        stop: type[BaseException],
        *,
        patience: float,
        deadline: float | None = None,
        context_bytes: int = MAX_CONTEXT_BYTES,
    ) -> None:
        super().__init__(deadline=deadline, context_bytes=context_bytes)
        self._stop = stop
        self._until = time.monotonic() + patience

    def check_deadline(self) -> None:
        """Raise when the moment or the deadline has passed."""
        if time.monotonic() > self._until:
            raise self._stop
        Budget.check_deadline(self)
