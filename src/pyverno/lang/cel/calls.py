"""Closures of calls: choosing an overload by the values at run time, and charging what it costs.

Overloads that the checker is certain of are called directly. This module must never look at nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.evaluation import EVALUATION, Frame
from pyverno.lang.cel.steps import Run, Step
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import (
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    lacking,
    no_such_overload,
    type_name,
)

__all__ = ["accepts", "call_run", "static_cost"]

Guard: TypeAlias = Callable[[Value], bool]

_EXACT: Final[dict[str, type]] = {
    "null": type(None),
    "bool": bool,
    "int": int,
    "uint": Uint,
    "double": float,
    "string": str,
    "bytes": bytes,
    "timestamp": Timestamp,
    "duration": Duration,
    "type": TypeValue,
}


_UNNAMED: Final = frozenset({"contains", "endsWith", "find", "findAll", "matches", "or", "startsWith"})
"""Functions that look at their values themselves, and do not say who they are."""


def accepts(type_: Type) -> Guard | None:
    """Return a test whether a value fits a parameter's type, or None when everything does."""
    if type_.kind in ("dyn", "any", "param"):
        return None
    exact = _EXACT.get(type_.kind)
    if exact is not None:
        kind: type = exact
        return lambda value: type(value) is kind
    if type_.kind == "list":
        return lambda value: isinstance(value, (list, tuple))
    if type_.kind == "map":
        return lambda value: isinstance(value, dict)
    if type_.name == "optional_type":
        return lambda value: isinstance(value, Optional)
    name = type_.name
    return lambda value: type_name(value) == name


def static_cost(overloads: tuple[Overload, ...]) -> int:
    """Return what the caller charges for a call: 1, or 0 when the cost depends on the values."""
    single = len(overloads) == 1
    return 0 if any(overload.cost and (single or not overload.resolved_only) for overload in overloads) else 1


def call_run(function: str, overloads: tuple[Overload, ...], args: tuple[Step, ...], *, exact: bool) -> Run:
    """Return a closure that calls the overload whose parameters take the arguments."""
    runs = tuple(step.run for step in args)
    single = len(overloads) == 1
    charged = static_cost(overloads) == 0
    if single and exact:
        return _direct(overloads[0], runs, charged=charged)
    if single and len(runs) <= 2 and runs and not overloads[0].in_context:
        return _guarded(function, overloads[0], runs, charged=charged)
    table = tuple(
        (
            overload,
            tuple(
                (position, guard)
                for position, type_ in enumerate(overload.signature.params)
                if (guard := accepts(type_)) is not None
            ),
        )
        for overload in overloads
    )

    def run(f: Frame) -> Value:
        values = tuple([run(f) for run in runs])
        for overload, guards in table:
            for position, guard in guards:
                if not guard(values[position]):
                    break
            else:
                result = overload.apply(f[EVALUATION], *values) if overload.in_context else overload.apply(*values)
                if charged:
                    cost = overload.cost
                    f[0] += cost(values, result) if cost and (single or not overload.resolved_only) else 1
                return result
        raise _unfit(function, values)

    return run


def _direct(overload: Overload, runs: tuple[Run, ...], *, charged: bool) -> Run:
    apply = overload.apply
    cost = overload.cost if charged else None
    if overload.in_context or len(runs) > 2:
        in_context = overload.in_context

        def many(f: Frame) -> Value:
            values = tuple([run(f) for run in runs])
            result = apply(f[EVALUATION], *values) if in_context else apply(*values)
            if cost is not None:
                f[0] += cost(values, result)
            return result

        return many
    if not runs:

        def none(f: Frame) -> Value:
            result = apply()
            if cost is not None:
                f[0] += cost((), result)
            return result

        return none
    if len(runs) == 1:
        (only,) = runs

        def one(f: Frame) -> Value:
            value = only(f)
            result = apply(value)
            if cost is not None:
                f[0] += cost((value,), result)
            return result

        return one
    first, second = runs

    def two(f: Frame) -> Value:
        one_value = first(f)
        two_value = second(f)
        result = apply(one_value, two_value)
        if cost is not None:
            f[0] += cost((one_value, two_value), result)
        return result

    return two


def _anything(_: Value) -> bool:
    return True


def _guarded(function: str, overload: Overload, runs: tuple[Run, ...], *, charged: bool) -> Run:
    """Return a closure for one overload of one or two parameters, which tests the values."""
    apply = overload.apply
    cost = overload.cost if charged else None
    fits = tuple(accepts(type_) or _anything for type_ in overload.signature.params)
    if len(runs) == 1:
        (only,), (fits_only,) = runs, fits

        def one(f: Frame) -> Value:
            value = only(f)
            if not fits_only(value):
                raise _unfit(function, (value,))
            result = apply(value)
            if cost is not None:
                f[0] += cost((value,), result)
            return result

        return one
    first, second = runs
    fits_first, fits_second = fits

    def two(f: Frame) -> Value:
        left = first(f)
        right = second(f)
        if not (fits_first(left) and fits_second(right)):
            raise _unfit(function, (left, right))
        result = apply(left, right)
        if cost is not None:
            f[0] += cost((left, right), result)
        return result

    return two


def _unfit(function: str, values: tuple[Value, ...]) -> EvaluationError:
    """Return the error of a call whose values no overload takes, as cel-go prints it: a receiver is the first value."""
    if function in ("size", "sort"):
        return lacking(function, values[0])
    if function in _UNNAMED:
        return no_such_overload()
    if function == "flatten":  # cel-go: the one function that names its receiver first
        return EvaluationError(f"no such overload: {type_name(values[0])}.flatten()")
    return EvaluationError(f"no such overload: {function}({', '.join(map(type_name, values))})")
