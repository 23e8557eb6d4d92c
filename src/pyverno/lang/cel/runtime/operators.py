"""Closures of operators: arithmetic, comparison, membership and negation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.lang.cel import arithmetic
from pyverno.lang.cel.checking.checked import Resolution
from pyverno.lang.cel.runtime import steps
from pyverno.lang.cel.runtime.evaluation import EVALUATION, ITEM_BYTES, Frame
from pyverno.lang.cel.runtime.steps import Run, Step, traversal_cost
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.values import MISSING, Value, map_find, no_such_overload, size_of

__all__ = ["OPERATORS"]

_ORDERINGS: Final = {
    "_<_": frozenset({-1}),
    "_<=_": frozenset({-1, 0}),
    "_>_": frozenset({1}),
    "_>=_": frozenset({0, 1}),
}
_ARITHMETIC: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "_-_": arithmetic.subtract,
    "_*_": arithmetic.multiply,
    "_/_": arithmetic.divide,
    "_%_": arithmetic.modulo,
}

LARGE: Final = 256
"""Sizes up to which what an operator makes is not counted."""

FEW: Final = 8
"""Elements of a list that a step looks at."""


def _add(resolution: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    left, right = args[0].run, args[1].run
    texts = _only(resolution, "string", "bytes")
    add = arithmetic.add

    def run(f: Frame) -> Value:
        one = left(f)
        two = right(f)
        result = add(one, two)
        if type(result) is int:
            return result
        size = size_of(result)
        if size is not None:
            if texts:
                f[0] += traversal_cost(size) - 1
            if size > LARGE:
                f[EVALUATION].produce(size if isinstance(result, (str, bytes)) else size * ITEM_BYTES)
        return result

    return Step(run, cost + 1)


def _binary(resolution: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    left, right = args[0].run, args[1].run
    operate = _ARITHMETIC[resolution.function]

    def run(f: Frame) -> Value:
        one = left(f)
        return operate(one, right(f))

    return Step(run, cost + 1)


def _negate(_: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    operand = args[0].run
    negate = arithmetic.negate

    def run(f: Frame) -> Value:
        return negate(operand(f))

    return Step(run, cost + 1)


def _not(_: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    operand = args[0].run

    def run(f: Frame) -> Value:
        value = operand(f)
        if value is True:
            return False
        if value is False:
            return True
        raise no_such_overload()

    return Step(run, cost + 1)


def _equals(resolution: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    run = steps.equality_run(args[0].run, args[1].run, negated=resolution.function == "_!=_")
    return Step(run, cost + 1)


def _order(resolution: Resolution, args: tuple[Step, ...], cost: int, _folds: bool) -> Step:
    texts = _only(resolution, "string", "bytes")
    run = steps.comparison_run(
        args[0].run, args[1].run, resolution.function, _ORDERINGS[resolution.function], texts=texts
    )
    return Step(run, cost + 1)


def _in(resolution: Resolution, args: tuple[Step, ...], cost: int, folds: bool) -> Step:
    left, right = args
    if right.is_constant and folds and isinstance(right.constant, list):
        members = _member_set(right.constant)
        if members is not None:
            return Step(_set_membership(left.run, members), left.cost)
    in_list = len(resolution.overloads) == 1 and resolution.overloads[0].signature.params[1].kind == "list"
    return Step(_membership(left.run, right.run, by_size=in_list), cost + (0 if in_list else 1))


def _only(resolution: Resolution, *kinds: str) -> bool:
    """Return whether the checker found one overload, of operands of these kinds."""
    return len(resolution.overloads) == 1 and resolution.overloads[0].signature.params[0].kind in kinds


def _member_set(items: list[Value]) -> frozenset[tuple[bool, Value]] | None:
    """Return the members of a constant list for fast look-up, or None when some are not plain scalars."""
    if not all(type(item) in (str, int, Uint, bool) for item in items):
        return None
    return frozenset((type(item) is bool, item) for item in items)


def _set_membership(left: Run, members: frozenset[tuple[bool, Value]]) -> Run:
    if not members:
        return lambda _: False
    texts = frozenset(item for _, item in members if type(item) is str)
    only_texts = len(texts) == len(members)

    def run(f: Frame) -> Value:
        value = left(f)
        if type(value) is str:
            return value in texts
        if only_texts or type(value) not in (int, Uint, float, bool):
            return False
        return (type(value) is bool, value) in members

    return run


def _membership(left: Run, right: Run, *, by_size: bool) -> Run:
    def run(f: Frame) -> Value:
        value = left(f)
        container = right(f)
        if isinstance(container, (list, tuple)):
            size = len(container)
            if by_size:
                f[0] += size
            evaluation = f[EVALUATION]
            if size > FEW:
                evaluation.runtime.budget.charge_steps(size // FEW)
            if type(value) is str:
                return value in container
            return any(evaluation.are_equal(value, item) for item in container)
        if isinstance(container, dict):
            return map_find(container, value) is not MISSING
        raise no_such_overload()

    return run


Make = Callable[[Resolution, tuple[Step, ...], int, bool], Step]

OPERATORS: Final[dict[str, Make]] = {
    "_+_": _add,
    "_-_": _binary,
    "_*_": _binary,
    "_/_": _binary,
    "_%_": _binary,
    "-_": _negate,
    "!_": _not,
    "_==_": _equals,
    "_!=_": _equals,
    "_<_": _order,
    "_<=_": _order,
    "_>_": _order,
    "_>=_": _order,
    "@in": _in,
}
"""How each operator becomes a step: of its overloads, its operands, their cost, and whether constants are folded."""
