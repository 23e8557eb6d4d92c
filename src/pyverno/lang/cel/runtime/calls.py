"""Closures of calls: choosing an overload by the values at run time, and charging what it costs.

This is the one place that calls functions while an expression runs (`fast.values` has that of the fast tier).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Overload
from pyverno.lang.cel.faults import converted
from pyverno.lang.cel.runtime.evaluation import EVALUATION, Frame
from pyverno.lang.cel.runtime.steps import Run, Step
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import Optional, Value, lacking, no_such_overload, type_name
from pyverno.lang.cel.work import instant

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
"""Functions that check the types of their operands themselves; their errors do not name the function."""


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


def call_run(
    function: str, overloads: tuple[Overload, ...], args: tuple[Step, ...], *, is_written: bool = False
) -> Run:
    """Return a closure that calls the overload whose parameters take the arguments.

    Every call of a function goes through here: the values are tested against the declared types, the work is charged
    before it is done, and whatever the function raises ends as a typed error. `is_written`: all arguments
    are written in the expression, so that errors may show them.
    """
    runs = tuple(step.run for step in args)
    single = len(overloads) == 1
    charged = static_cost(overloads) == 0
    if single and len(runs) <= 2 and runs and not overloads[0].in_context:
        fits = tuple(accepts(type_) or _anything for type_ in overloads[0].signature.params)
        make = _of_one if len(runs) == 1 else _of_two
        return make(_Call(function, overloads[0], runs, fits, charged, is_written))
    table = tuple(
        (
            overload,
            None if overload.work is instant else overload.work,
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
        for overload, work, guards in table:
            for position, guard in guards:
                if not guard(values[position]):
                    break
            else:
                try:
                    if work is not None and (steps := work(values)):
                        f[EVALUATION].afford(function, steps)
                    result = overload.apply(f[EVALUATION], *values) if overload.in_context else overload.apply(*values)
                    if charged:
                        cost = overload.cost
                        f[0] += cost(values, result) if cost and (single or not overload.resolved_only) else 1
                except Exception as error:
                    raise converted(function, error, is_written=is_written) from None
                return result
        raise _unfit(function, values)

    return run


class _Call(NamedTuple):
    """A call of the one overload of a function, with a test for each argument."""

    function: str
    overload: Overload
    runs: tuple[Run, ...]
    fits: tuple[Guard, ...]
    is_charged: bool
    is_written: bool

    def charged_parts(self) -> tuple[Callable[..., Value], Callable[..., int] | None, Callable[..., int] | None]:
        """Return the function, its cost where the call charges it, and its work where it has any."""
        overload = self.overload
        work = None if overload.work is instant else overload.work
        return overload.apply, overload.cost if self.is_charged else None, work


def _anything(_: Value) -> bool:
    return True


def _of_one(call: _Call) -> Run:
    function, is_written = call.function, call.is_written
    apply, cost, work = call.charged_parts()
    (only,), (fits_only,) = call.runs, call.fits

    def one(f: Frame) -> Value:
        value = only(f)
        if not fits_only(value):
            raise _unfit(function, (value,))
        try:
            if work is not None and (steps := work((value,))):
                f[EVALUATION].afford(function, steps)
            result = apply(value)
            if cost is not None:
                f[0] += cost((value,), result)
        except Exception as error:
            raise converted(function, error, is_written=is_written) from None
        return result

    return one


def _of_two(call: _Call) -> Run:
    function, is_written = call.function, call.is_written
    apply, cost, work = call.charged_parts()
    first, second = call.runs
    fits_first, fits_second = call.fits

    def two(f: Frame) -> Value:
        left = first(f)
        right = second(f)
        if not (fits_first(left) and fits_second(right)):
            raise _unfit(function, (left, right))
        try:
            if work is not None and (steps := work((left, right))):
                f[EVALUATION].afford(function, steps)
            result = apply(left, right)
            if cost is not None:
                f[0] += cost((left, right), result)
        except Exception as error:
            raise converted(function, error, is_written=is_written) from None
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
