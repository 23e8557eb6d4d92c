"""Steps: what the planner makes of a node, a closure over frames with the cost that its caller charges.

`cost` is the part of cel-go's run-time cost that is the same in every run; a step that must not always run (the right
side of `&&`, a branch, a loop body) is charged when it does, by the step around it. Costs that depend on values are
charged by the closure itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.lang.cel.faults import OperandError, with_operands
from pyverno.lang.cel.runtime import access
from pyverno.lang.cel.runtime.evaluation import EVALUATION, UNSET, Frame
from pyverno.lang.cel.values import (
    MISSING,
    NONE,
    Optional,
    StructValue,
    Value,
    compare,
    equals,
    no_such_overload,
    size_of,
)
from pyverno.value import dataclass

__all__ = [
    "Run",
    "Step",
    "bound_step",
    "chain_run",
    "comparison_run",
    "constant_step",
    "equality_run",
    "field_run",
    "has_run",
    "index_run",
    "local_step",
    "logical_run",
    "optional_field_run",
    "optional_index_run",
    "ternary_run",
    "traversal_cost",
    "variable_step",
]

Run: TypeAlias = Callable[[Frame], Value]
TRAVERSAL: Final = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """A closure, its static cost, and what cel-go calls an attribute: a variable with its selections.

    `base` is the part of an attribute's cost that a conditional around it does not charge; `constant` is the value
    when it is known at compile time; `is_written`: the value is made of literals alone, so that errors may show it.
    """

    run: Run
    cost: int = 0
    attribute: bool = False
    base: int = 0
    constant: Value = MISSING
    root: int = -1
    path: tuple[str, ...] = ()
    is_written: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the value is known at compile time."""
        return self.constant is not MISSING


def traversal_cost(size: float) -> int:
    """Return cel-go's cost of walking over a text of that many code points."""
    return math.ceil(size * TRAVERSAL)


def constant_step(value: Value, cost: int = 0) -> Step:
    """Return the step of a constant."""

    def run(_: Frame) -> Value:
        return value

    return Step(run, cost, constant=value, is_written=True)


def variable_step(slot: int, name: str, *, is_written: bool) -> Step:
    """Return the step of a variable of the environment, which may be unbound."""

    def run(f: Frame) -> Value:
        value = f[slot]
        if value is UNSET:
            raise EvaluationError(f"no such attribute(s): {name}")
        return value

    return Step(run, 1, attribute=True, base=1, root=slot, is_written=is_written)


def local_step(slot: int) -> Step:
    """Return the step of a loop's variable."""

    def run(f: Frame) -> Value:
        return f[slot]

    return Step(run, 1, attribute=True, base=1, root=slot)


def bound_step(slot: int, value: Step) -> Step:
    """Return the step of a name that `cel.bind` binds: its value is computed on first use."""
    compute, cost = value.run, value.cost

    def run(f: Frame) -> Value:
        known = f[slot]
        if known is UNSET:
            f[0] += cost
            known = f[slot] = compute(f)
        return known

    return Step(run, 1, attribute=True, base=1)


def chain_run(slot: int, path: tuple[str, ...], slow: Run) -> Run:
    """Return a closure for `variable.a.b`; whatever is not a plain path of maps goes to `slow`."""
    if len(path) == 1:
        (a,) = path

        def one(f: Frame) -> Value:
            try:
                return f[slot][a]
            except (KeyError, TypeError, IndexError):
                return slow(f)

        return one
    if len(path) == 2:
        a, b = path

        def two(f: Frame) -> Value:
            try:
                return f[slot][a][b]
            except (KeyError, TypeError, IndexError):
                return slow(f)

        return two
    if len(path) == 3:
        a, b, c = path

        def three(f: Frame) -> Value:
            try:
                return f[slot][a][b][c]
            except (KeyError, TypeError, IndexError):
                return slow(f)

        return three
    a, b, c, d = path[:4]
    rest = path[4:]

    def more(f: Frame) -> Value:
        try:
            value = f[slot][a][b][c][d]
            for name in rest:
                value = value[name]
            return value
        except (KeyError, TypeError, IndexError):
            return slow(f)

    return more


def field_run(operand: Run, name: str, *, strict: bool) -> Run:
    """Return a closure for `operand.name`."""
    field = access.field

    def run(f: Frame) -> Value:
        value = operand(f)
        if type(value) is dict:
            try:
                return value[name]
            except KeyError:
                pass
        return field(value, name, strict=strict)

    return run


def optional_field_run(operand: Run, name: str, *, strict: bool) -> Run:
    """Return a closure for `operand.?name`; cel-go charges only what is there."""
    optional_field = access.optional_field

    def run(f: Frame) -> Value:
        found = optional_field(operand(f), name, strict=strict)
        if found is not NONE:
            f[0] += 1
        return found

    return run


def has_run(operand: Run, name: str, *, strict: bool) -> Run:
    """Return a closure for `has(operand.name)`; with `strict` it is an error to ask what holds nothing."""
    has_field = access.has_field

    def run(f: Frame) -> Value:
        value = operand(f)
        if type(value) is dict:
            return name in value
        return has_field(value, name, strict=strict)

    return run


def index_run(operand: Run, key: Run, *, is_written: bool, strict: bool) -> Run:
    """Return a closure for `operand[key]`; `is_written`: errors may show the key."""
    index = access.index

    def run(f: Frame) -> Value:
        value = operand(f)
        asked = key(f)
        try:
            return index(value, asked, strict=strict)
        except OperandError as error:
            raise (with_operands(error) if is_written else error) from None

    return run


def optional_index_run(operand: Run, key: Run, *, strict: bool) -> Run:
    """Return a closure for `operand[?key]`."""
    optional_index = access.optional_index

    def run(f: Frame) -> Value:
        found = optional_index(operand(f), key(f), strict=strict)
        if found is not NONE:
            f[0] += 1
        return found

    return run


def logical_run(terms: tuple[Step, ...], *, decisive: bool) -> Run:
    """Return a closure for `&&` (decided by false) or `||` (decided by true).

    A decisive term wins over errors before it; otherwise the first error is the result.
    """
    first, *others = terms
    first_run = first.run
    opposite = not decisive

    if len(others) == 1:
        second_run, second_cost = others[0].run, others[0].cost

        def two(f: Frame) -> Value:
            try:
                one = first_run(f)
            except EvaluationError as error:
                f[0] += second_cost
                if _settles(second_run, f, decisive):
                    return decisive
                raise error from None
            if one is decisive:
                return decisive
            f[0] += second_cost
            other = second_run(f)
            if one is opposite and (other is True or other is False):
                return other
            if other is decisive:
                return decisive
            raise no_such_overload()

        return two
    everything = ((first_run, 0), *((step.run, step.cost) for step in others))

    def many(f: Frame) -> Value:
        failed: EvaluationError | None = None
        for run, cost in everything:
            f[0] += cost
            try:
                value = run(f)
            except EvaluationError as error:
                failed = failed or error.copied()
                continue
            if value is decisive:
                return decisive
            if value is not opposite:
                failed = failed or no_such_overload()
        if failed is not None:
            raise failed.copied()
        return opposite

    return many


def _settles(run: Run, f: Frame, decisive: bool) -> bool:
    try:
        return run(f) is decisive
    except EvaluationError:
        return False


def ternary_run(condition: Step, truthy: Step, falsy: Step) -> Run:
    """Return a closure for `condition ? truthy : falsy`; each branch is charged when taken."""
    test, yes, no = condition.run, truthy.run, falsy.run
    yes_cost = truthy.cost - (truthy.base if truthy.attribute else 0)
    no_cost = falsy.cost - (falsy.base if falsy.attribute else 0)

    def run(f: Frame) -> Value:
        chosen = test(f)
        if chosen is True:
            f[0] += yes_cost
            return yes(f)
        if chosen is False:
            f[0] += no_cost
            return no(f)
        raise no_such_overload()

    return run


def equality_run(left: Run, right: Run, *, negated: bool) -> Run:
    """Return a closure for `==` or `!=`; the caller charges 1, longer (or empty) texts charge the rest here."""

    def run(f: Frame) -> Value:
        one = left(f)
        two = right(f)
        if type(one) is str and type(two) is str:
            size = len(one) if len(one) < len(two) else len(two)  # min() costs as much as all else here
            if size > 10 or size == 0:
                f[0] += math.ceil(size * TRAVERSAL) - 1
            return (one == two) is not negated
        size = min(_size(one), _size(two))
        if size != 1:
            f[0] += math.ceil(size * TRAVERSAL) - 1
        if isinstance(one, _WITH_PARTS):
            return f[EVALUATION].are_equal(one, two) is not negated
        return equals(one, two) is not negated

    return run


_WITH_PARTS: Final = (list, tuple, dict, Optional, StructValue)


def _size(value: Value) -> int:
    if isinstance(value, Optional) and value.present:
        return _size(value.value)
    size = size_of(value)
    return 1 if size is None else size


def comparison_run(left: Run, right: Run, operator: str, wanted: frozenset[int], *, texts: bool) -> Run:
    """Return a closure for an ordering; `wanted` are the results of `compare` that make it true.

    With `texts` the operands are known to be strings or bytes, whose cost follows their size.
    """
    below, same, above = -1 in wanted, 0 in wanted, 1 in wanted

    def run(f: Frame) -> Value:
        one = left(f)
        two = right(f)
        if type(one) is int and type(two) is int:
            return below if one < two else same if one == two else above
        if texts:
            f[0] += math.ceil(min(_size(one), _size(two)) * TRAVERSAL) - 1
        return compare(one, two, operator) in wanted

    return run
