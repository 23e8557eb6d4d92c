"""Arithmetic on values: `+ - * / %` and negation, with CEL's overflow rules.

Integers are 64 bits wide, doubles never fail, times stay within years 1 to 9999.
"""

from __future__ import annotations

import math
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.scalars import Duration, Timestamp, Uint
from pyverno.lang.cel.values import INT_MAX, INT_MIN, UINT_MAX, Value, lacking

__all__ = ["add", "checked_duration", "checked_timestamp", "divide", "modulo", "multiply", "negate", "subtract"]

MIN_SECONDS: Final = -62_135_596_800
MAX_SECONDS: Final = 253_402_300_799
_NS: Final = 10**9


def checked_duration(ns: int) -> Duration:
    """Return a duration, or raise when it does not fit 64 bits of nanoseconds."""
    if not INT_MIN <= ns <= INT_MAX:
        raise EvaluationError("duration overflow")
    return Duration(ns)


def checked_timestamp(ns: int, offset: int = 0) -> Timestamp:
    """Return a timestamp, or raise when it is outside years 1 to 9999."""
    if not MIN_SECONDS <= ns // _NS <= MAX_SECONDS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(ns, offset)


def _int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")


def _uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def add(left: Value, right: Value) -> Value:
    """Return `left + right` for numbers, texts, lists and times.

    >>> add(Uint(2), Uint(3)), add("a", "b")
    (5u, 'ab')
    """
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return _int(left + right)
        if kind is str or kind is float or kind is list or kind is bytes:
            return left + right
        if kind is Uint:
            return _uint(int(left) + int(right))
        if kind is Duration:
            return checked_duration(left.ns + right.ns)
    if kind is Timestamp and other is Duration:
        return checked_timestamp(left.ns + right.ns, left.offset)
    if kind is Duration and other is Timestamp:
        return checked_timestamp(left.ns + right.ns, right.offset)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return [*left, *right]
    raise lacking("_+_", left, int, float, Uint, bytes, list, tuple)


def subtract(left: Value, right: Value) -> Value:
    """Return `left - right`."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return _int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return checked_duration(left.ns - right.ns)
    if kind is Timestamp and other is Duration:
        return checked_timestamp(left.ns - right.ns, left.offset)
    raise lacking("_-_", left, int, float, Uint)


def multiply(left: Value, right: Value) -> Value:
    """Return `left * right`."""
    kind = type(left)
    if kind is type(right):
        if kind is int:
            return _int(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return _uint(int(left) * int(right))
    raise lacking("_*_", left, int, float, Uint)


def divide(left: Value, right: Value) -> Value:
    """Return `left / right`: integers cut toward zero, doubles as IEEE 754 has it."""
    kind = type(left)
    if kind is not type(right):
        raise lacking("_/_", left, int, float, Uint)
    if kind is float:
        return _divide_doubles(left, right)
    if kind is int or kind is Uint:
        if right == 0:
            raise EvaluationError("division by zero")
        quotient = abs(left) // abs(right)
        if kind is Uint:
            return Uint(quotient)
        return _int(quotient if (left < 0) == (right < 0) else -quotient)
    raise lacking("_/_", left, int, float, Uint)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    """Return `left % right` for integers; the sign is the left one's."""
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise lacking("_%_", left, int, Uint)
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    if kind is Uint:
        return Uint(rest)
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    return -rest if left < 0 else rest


def negate(value: Value) -> Value:
    """Return `-value`."""
    kind = type(value)
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return checked_duration(-value.ns)
    raise lacking("-_", value, int, float, bool)
