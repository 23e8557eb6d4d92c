"""One run of an expression: its frame, its cost and its limits.

A frame is a list: the cost so far, the cost at which to look at the limits next, the `Evaluation`, then the slots of
variables. Closures read and write it by index.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from pyverno.errors import BudgetExceededError
from pyverno.lang.cel.host import NO_CEL_HOST, CelHost
from pyverno.lang.cel.regex import Pattern, compile_pattern, search_work
from pyverno.lang.cel.values import Value, equals
from pyverno.lang.cel.work import LONGEST_CALL
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = [
    "COST",
    "EVALUATION",
    "FIRST_SLOT",
    "ITEM_BYTES",
    "NEXT_CHECK",
    "UNSET",
    "CostMeter",
    "Evaluation",
    "Frame",
    "Traced",
]

Frame: TypeAlias = list[Any]
COST: Final = 0
NEXT_CHECK: Final = 1
EVALUATION: Final = 2
FIRST_SLOT: Final = 3

UNSET: Final = object()
"""The content of a slot before its variable has a value."""

CHECK_EVERY: Final = 1_000
"""Cost units between two looks at the deadline."""

ITEM_BYTES: Final = 8
"""Memory of an element in a list that shares its elements with another."""

PER_EXPRESSION: Final = 1_000_000
"""Kubernetes' limit for one expression (`PerCallLimit`)."""


@dataclass(slots=True)
class CostMeter:
    """The cost that several expressions may use together (a policy, or its match conditions); counts what they spent.

    `limit` is in cost units of cel-go: 10,000,000 for a policy, 2,500,000 for its match conditions.
    """

    limit: int = 10_000_000
    spent: int = 0

    @property
    def left(self) -> int:
        """The budget that is left."""
        return self.limit - self.spent


@dataclass(frozen=True, slots=True)
class Traced:
    """The value (or error text) that one sub-expression had, by node id; the last time it ran wins in loops."""

    node: int
    value: Value
    error: str = ""


class Evaluation:
    """The resources of a running function: the runtime, the host behind the libraries, the cost counter."""

    __slots__ = ("frame", "host", "limit", "runtime", "trace")

    def __init__(
        self,
        runtime: Runtime,
        host: CelHost = NO_CEL_HOST,
        limit: int = PER_EXPRESSION,
        frame: Frame | None = None,
    ) -> None:
        self.runtime = runtime
        self.host = host
        self.limit = limit
        self.frame: Frame = [0, 0, self] if frame is None else frame
        self.trace: list[Traced] | None = None

    def charge(self, cost: int) -> None:
        """Add to the cost; raises BudgetExceededError beyond the limit."""
        self.frame[COST] += cost
        if self.frame[COST] > self.frame[NEXT_CHECK]:
            self.checkpoint(self.frame)

    def check_room(self, cost: int) -> None:
        """Raise BudgetExceededError when work of that cost would exceed the limit, before doing it."""
        if self.frame[COST] + cost > self.limit:
            raise _out_of_cost()

    def afford(self, function: str, steps: int) -> None:
        """Charge the steps of a call before it begins; raises BudgetExceededError when there are too many."""
        if steps > LONGEST_CALL:
            raise BudgetExceededError(f"{function}: the operands are too large", resource="steps")
        self.runtime.budget.charge_steps(steps)

    def pattern(self, function: str, text: str, subject: str) -> Pattern:
        """Return a compiled pattern, and charge a search for it in a text."""
        budget = self.runtime.budget
        pattern = compile_pattern(text, budget)
        most, usual = search_work(pattern, subject)
        if most > LONGEST_CALL:
            raise BudgetExceededError(f"{function}: the text is too long for this pattern", resource="steps")
        budget.charge_steps(usual)
        return pattern

    def are_equal(self, left: Value, right: Value) -> bool:
        """Return whether two values are equal; items of lists and maps are charged as they are compared."""
        return equals(left, right, self.runtime.budget.charge_steps)

    def produce(self, size: int) -> None:
        """Check the size of a text or list about to be made; raises BudgetExceededError above the runtime's limit."""
        self.runtime.budget.produce(size)

    def checkpoint(self, frame: Frame) -> None:
        """Look at the cost limit and the deadline, and decide when to look again."""
        cost = frame[COST]
        if cost > self.limit:
            raise _out_of_cost()
        self.runtime.budget.check_deadline()
        frame[NEXT_CHECK] = min(self.limit, cost + CHECK_EVERY)


def _out_of_cost() -> BudgetExceededError:
    return BudgetExceededError("operation cancelled: actual cost limit exceeded", resource="cost")
