"""Arithmetic on numbers, quantities (`1Gi`) and durations (`1h30m`).

A text is a quantity when it parses as one, else a duration; so `5m` is 0.005 and `1h` an hour. This module must never
convert between the three: operands of kinds that do not go together are an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from pyverno.errors import BudgetExceededError, ValueSyntaxError
from pyverno.kube.json import JSON, is_number
from pyverno.kube.quantity import Quantity, try_quantity
from pyverno.kube.time.duration import duration_from_seconds, duration_seconds, format_duration, try_duration
from pyverno.lang.jmespath.cost import FLAT, ITEM, Cost
from pyverno.lang.jmespath.function import ANY, ARRAY, NUMBER, failure, function
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = ["FUNCTIONS"]

_EXACT: Final = 2**53
_INT64: Final = 2**63
_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True)
class _Duration:
    nanoseconds: int

    def __str__(self) -> str:
        wrapped = (self.nanoseconds + _INT64) % (2 * _INT64) - _INT64  # as Go's integers overflow
        return format_duration(wrapped)


_Operand: TypeAlias = float | Quantity | _Duration


@function(
    "add",
    ANY,
    ANY,
    returns=ANY,
    cost=Cost(per_step=4, most=1024),
    note="adds two numbers, two quantities or two durations",
)
def add(_runtime: Runtime, left: JSON, right: JSON) -> JSON:
    """Add two values of one kind; a quantity is written in the family of the left one.

    >>> add('1Gi', '1Mi')
    "1025Mi"
    >>> add('5m', '10')
    "10005m"
    >>> add('1h', '30m')
    error: JMESPath function 'add': Types mismatch
    """
    return _combine("add", left, right)


@function(
    "sum",
    ARRAY,
    returns=ANY,
    cost=Cost(per_step=ITEM // 4, most=30_000 * ITEM),
    note="adds up a list of numbers, of quantities or of durations",
)
def total(_runtime: Runtime, items: list[JSON]) -> JSON:
    """Add up a list; a single item is returned as it is.

    >>> sum(['1Gi', '2Gi'])
    "3Gi"
    >>> sum(`[]`)
    error: JMESPath function 'sum': at least one element in the array is required
    """
    if not items:
        raise failure("sum", "at least one element in the array is required")
    result = items[0]
    for item in items[1:]:
        result = _combine("sum", result, item)
    return result


@function(
    "subtract",
    ANY,
    ANY,
    returns=ANY,
    cost=Cost(per_step=4, most=1024),
    note="subtracts two numbers, two quantities or two durations",
)
def subtract(_runtime: Runtime, left: JSON, right: JSON) -> JSON:
    """Subtract two values of one kind.

    >>> subtract('10s', '1m30s')
    "-1m20s"
    """
    return _combine("subtract", left, right)


@function(
    "multiply",
    ANY,
    ANY,
    returns=ANY,
    cost=Cost(per_step=4, most=1024),
    note="multiplies a number with a number, quantity or duration",
)
def multiply(_runtime: Runtime, left: JSON, right: JSON) -> JSON:
    """Multiply two numbers, or a number and a quantity or duration in either order.

    >>> multiply(`3`, '1Gi')
    "3Gi"
    >>> multiply(`1.5`, '1h30m')
    "2h15m0s"
    """
    return _combine("multiply", left, right)


@function(
    "divide",
    ANY,
    ANY,
    returns=ANY,
    cost=Cost(per_step=4, most=1024),
    note="divides by a number or by a value of the same kind, never by zero",
)
def divide(_runtime: Runtime, left: JSON, right: JSON) -> JSON:
    """Divide two values of one kind, which gives a number, or a quantity or duration by a number.

    A quantity divided by a number is cut toward zero at the finer of the two written scales.

    >>> divide('1Gi', '512Mi')
    2
    >>> divide('10.00', `3`)
    "3330m"
    >>> divide('10s', `0`)
    error: JMESPath function 'divide': Zero divisor passed
    """
    return _combine("divide", left, right)


@function(
    "modulo",
    ANY,
    ANY,
    returns=ANY,
    cost=Cost(per_step=4, most=1024),
    note="gives the remainder of a division of two values of one kind",
)
def modulo(_runtime: Runtime, left: JSON, right: JSON) -> JSON:
    """Return the remainder, with the sign of the dividend; numbers and quantities must be whole.

    >>> modulo(`-10`, `3`)
    -1
    >>> modulo('3h', '2h')
    "1h0m0s"
    """
    return _combine("modulo", left, right)


@function("round", NUMBER, NUMBER, returns=NUMBER, cost=FLAT, note="rounds a number to a count of decimal places")
def round_number(_runtime: Runtime, value: float, places: float) -> JSON:
    """Round half away from zero, in binary floating point.

    >>> round(`-2.5`, `0`)
    -3
    >>> round(`3.14159`, `2`)
    3.14
    """
    if places != places // 1:
        raise failure("round", "Non-integer argument(s) passed for round off")
    if places < 0:
        # COMPAT: the text that Go gives for arguments that upstream forgot
        raise failure("round", "%!d(MISSING) argument is out of bounds (%!d(MISSING))")
    shift = 10.0**places if places < 309 else math.inf
    shifted = value * shift
    if not math.isfinite(shifted):
        return value
    whole = math.trunc(shifted)
    if abs(shifted - whole) >= 0.5:
        whole += 1 if shifted > 0 else -1
    return _plain(whole / shift)


def _combine(name: str, left: JSON, right: JSON) -> JSON:
    first, second = _operand(name, left), _operand(name, right)
    operation = _OPERATIONS[name].get((first.__class__, second.__class__))
    if operation is None:
        raise failure(name, "Types mismatch")
    try:
        result = operation(first, second)
    except ZeroDivisionError:
        raise failure(name, "Zero divisor passed") from None
    except _NotWholeError:
        raise failure(name, "Non-integer argument(s) passed for modulo") from None
    except OverflowError:
        raise failure(name, "the result is too large") from None
    except ValueSyntaxError as error:
        raise failure(name, "the result cannot be written", detailed=error.message) from None
    return _plain(result) if isinstance(result, float) else str(result)


def _operand(name: str, value: JSON) -> _Operand:
    if is_number(value):
        return float(value)
    if isinstance(value, str):
        if len(value) > _LONGEST:
            raise BudgetExceededError(
                f"JMESPath function '{name}' takes no more than {_LONGEST} bytes", resource="bytes"
            )
        quantity = try_quantity(value)
        if quantity is not None:
            return quantity
        duration = try_duration(value)
        if duration is not None:
            return _Duration(duration)
    raise failure(name, "invalid operand")


def _plain(value: float) -> JSON:
    """Return a whole number as int where that is exact."""
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


class _NotWholeError(Exception):
    pass


def _multiply_duration(duration: _Duration, factor: float) -> _Duration:
    return _Duration(duration_from_seconds(duration_seconds(duration.nanoseconds) * factor))


def _divide_duration(duration: _Duration, divisor: float) -> _Duration:
    if divisor == 0:
        raise ZeroDivisionError
    return _Duration(duration_from_seconds(duration_seconds(duration.nanoseconds) / divisor))


def _divide_durations(left: _Duration, right: _Duration) -> float:
    return duration_seconds(left.nanoseconds) / duration_seconds(right.nanoseconds)


def _modulo_numbers(left: float, right: float) -> float:
    if not (_is_int64(left) and _is_int64(right)):
        raise _NotWholeError
    return float(_remainder(int(left), int(right)))


def _modulo_quantities(left: Quantity, right: Quantity) -> Quantity:
    if left.whole() is None or right.whole() is None:
        raise _NotWholeError
    return left.modulo(right)


def _modulo_durations(left: _Duration, right: _Duration) -> _Duration:
    return _Duration(_remainder(left.nanoseconds, right.nanoseconds))


def _is_int64(value: float) -> bool:
    return value.is_integer() and -_INT64 <= value < _INT64


def _remainder(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend, as Go's `%`."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


_Operation: TypeAlias = Callable[..., float | Quantity | _Duration]

_OPERATIONS: Final[dict[str, dict[tuple[type, type], _Operation]]] = {
    "add": {
        (float, float): lambda left, right: left + right,
        (Quantity, Quantity): Quantity.add,
        (_Duration, _Duration): lambda left, right: _Duration(left.nanoseconds + right.nanoseconds),
    },
    "subtract": {
        (float, float): lambda left, right: left - right,
        (Quantity, Quantity): Quantity.subtract,
        (_Duration, _Duration): lambda left, right: _Duration(left.nanoseconds - right.nanoseconds),
    },
    "multiply": {
        (float, float): lambda left, right: left * right,
        (Quantity, float): Quantity.multiply,
        (float, Quantity): lambda left, right: right.multiply(left),
        (_Duration, float): _multiply_duration,
        (float, _Duration): lambda left, right: _multiply_duration(right, left),
    },
    "divide": {
        (float, float): lambda left, right: left / right,
        (Quantity, float): Quantity.divide,
        (Quantity, Quantity): Quantity.ratio,
        (_Duration, float): _divide_duration,
        (_Duration, _Duration): _divide_durations,
    },
    "modulo": {
        (float, float): _modulo_numbers,
        (Quantity, Quantity): _modulo_quantities,
        (_Duration, _Duration): _modulo_durations,
    },
}
_OPERATIONS["sum"] = _OPERATIONS["add"]

FUNCTIONS: Final = (add, total, subtract, multiply, divide, modulo, round_number)
