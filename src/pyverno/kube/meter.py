"""The meter that functions of `kube` charge for their work.

The budget of a review (`lang.runtime.Budget`) is a `Meter`. Functions whose input a request controls take one and
charge it inside their loops, so that a review ends at its limits and its deadline however large the input is.
"""

from __future__ import annotations

from typing import Final, Protocol

from pyverno.errors import BudgetExceededError

__all__ = ["FREE_OF_CHARGE", "UNMETERED", "Meter"]


class Meter(Protocol):
    """Counts elementary steps of work; one step takes roughly a microsecond of a loop in Python."""

    def charge_steps(self, count: int = 1) -> None:
        """Count steps; raises BudgetExceededError when the steps are used up or the deadline has passed."""
        ...


class _Unmetered:
    def charge_steps(self, count: int = 1) -> None:
        """Allow any number of steps."""


UNMETERED: Final[Meter] = _Unmetered()
"""For input that no request controls: the command line's own files, generated data, tests."""


class _NothingMetered:
    def charge_steps(self, count: int = 1) -> None:
        """Refuse any step."""
        raise BudgetExceededError("this costs more than can be done without a budget", resource="steps")


FREE_OF_CHARGE: Final[Meter] = _NothingMetered()
"""A meter without limits, for callers without a budget."""
