"""The cost account of a pass-check: an upper bound of what the closures would have spent on the same evaluation.

A unit is what the closures evaluate once: the expressions of a rule, or a variable that several rules share. Its cost
is a number that is known when the function is written, plus the lengths of loops times what one visit can cost. Loops
are charged before they run, so that the account also bounds the steps of the generated function itself.
"""

from __future__ import annotations

from pyverno.lang.codegen import Source
from pyverno.value import dataclass, field

__all__ = ["BeyondError", "Unit", "begin_unit", "end_unit"]

VISIT: int = 16
"""The highest cost of a loop's own bookkeeping per visit (cel-go's expansions need 3 to 14)."""


class BeyondError(Exception):
    """An expression has a part that generated code does not cover, or always costs too much."""


@dataclass(slots=True, eq=False)
class Unit:
    """One account while its code is being written.

    `spent` is the variable that holds what loops cost so far, or -1 where there can be none; `frames` are the costs
    of one run of what is being written: of the unit, and of one visit of each loop around.
    """

    source: Source
    limit: int
    limit_constant: int
    spent: int = -1
    start_constant: int = -1
    frames: list[int] = field(default_factory=lambda: [0])
    loops: list[int] = field(default_factory=list)

    @property
    def fixed(self) -> int:
        """The highest cost of the unit without its loops."""
        return self.frames[0]

    def charge(self, cost: int) -> None:
        """Count a cost for each time that the code being written runs."""
        self.frames[-1] += cost

    def charge_once(self, cost: int) -> None:
        """Count a cost that arises once in the unit, regardless of the current block."""
        self.frames[0] += cost

    def begin_once(self) -> None:
        """Begin code that runs once in the unit though it is in a loop."""
        self.frames.append(0)

    def end_once(self) -> None:
        """End such code."""
        self.frames[0] += self.frames.pop()

    def begin_loop(self, items: int, indent: int) -> None:
        """Write the charge for a loop over a variable, and a way out when it is too much."""
        if self.spent < 0:
            raise BeyondError
        self.loops.append(self.source.constant(None))
        self.source.line(indent, "v{} = v{} + len(v{}) * c{}", self.spent, self.spent, items, self.loops[-1])
        self.check(indent)
        self.frames.append(VISIT)

    def end_loop(self) -> None:
        """End the code of a visit: now it is known what one costs."""
        self.source.settle(self.loops.pop(), self.frames.pop())

    def add(self, spent: int, indent: int) -> None:
        """Write the addition of what another unit spent."""
        if self.spent < 0:
            raise BeyondError
        self.source.line(indent, "v{} = v{} + v{}", self.spent, self.spent, spent)
        self.check(indent)

    def check(self, indent: int) -> None:
        """Write the way out."""
        self.source.line(indent, "if v{} > c{}:", self.spent, self.limit_constant)
        self.source.line(indent + 1, "return False")


def begin_unit(source: Source, limit: int, indent: int, *, has_loops: bool) -> Unit:
    """Begin a unit that may cost at most `limit`; one without loops needs no code."""
    unit = Unit(source, limit, source.constant(limit))
    if has_loops:
        unit.spent, unit.start_constant = source.variable(), source.constant(None)
        source.line(indent, "v{} = c{}", unit.spent, unit.start_constant)
    return unit


def end_unit(unit: Unit) -> None:
    """End a unit; raises BeyondError when it is too dear on every object."""
    if unit.fixed > unit.limit:
        raise BeyondError
    if unit.start_constant >= 0:
        unit.source.settle(unit.start_constant, unit.fixed)
