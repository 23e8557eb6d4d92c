"""The math library: least and greatest, rounding, signs, bits, square roots.

Versions are cel-go's: rounding, signs and bits came with 1, `math.sqrt` with 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.scalars import Uint
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.macros import Macro, MacroError, NewId
from pyverno.lang.cel.values import INT_MIN, UINT_MAX, Value, compare, no_such_overload
from pyverno.lang.cel.work import instant, walking

__all__ = ["MATH", "round_half_away"]

_MASK: Final = UINT_MAX
MAX_ARGUMENTS: Final = 64
_PAIRS: Final = tuple(
    f"({one}, {two}) -> {one if one == two else 'dyn'}"
    for one in ("double", "int", "uint")
    for two in ("double", "int", "uint")
)
_SINGLES: Final = ("(double) -> double", "(int) -> int", "(uint) -> uint")
_LISTS: Final = ("(list(double)) -> double", "(list(int)) -> int", "(list(uint)) -> uint")


def _numeric(node: ast.Node) -> bool:
    """Return whether an argument may be a number as far as its form shows."""
    if isinstance(node, ast.Literal):
        return type(node.value) in (int, Uint, float)
    return not isinstance(node, (ast.ListLiteral, ast.MapLiteral, ast.StructLiteral))


def _extreme_macro(name: str, function_name: str) -> Macro:
    """Return the macro that lets `math.least` and `math.greatest` take any number of arguments."""

    def expand(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node | None:
        if not isinstance(target, ast.Ident) or target.name != "math":
            return None
        if not args:
            raise MacroError(target.offset, f"{name}() requires at least one argument")
        if len(args) == 1:
            only = args[0]
            is_list = isinstance(only, ast.ListLiteral) and only.elements and all(map(_numeric, only.elements))
            if not is_list and not _numeric(only):
                raise MacroError(only.offset, f"{name}() invalid single argument value")
            return ast.Call(new_id(), offset, function_name, None, args)
        for arg in args:
            if not _numeric(arg):
                raise MacroError(arg.offset, f"{name}() simple literal arguments must be numeric")
        if len(args) == 2:
            return ast.Call(new_id(), offset, function_name, None, args)
        numbers = ast.ListLiteral(new_id(), offset, args)
        return ast.Call(new_id(), offset, function_name, None, (numbers,))

    return expand


def _extreme(values: tuple[Value, ...], wanted: int, name: str) -> Value:
    numbers = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    if not numbers:
        raise EvaluationError(f"{name}(list) argument must not be empty")
    best = numbers[0]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            given = "(list)" if numbers is not values else ""
            raise EvaluationError(f"no such overload: {name}{given}")
        if compare(number, best) == wanted:
            best = number
    return best


@function("math.@min", *_SINGLES, *_PAIRS, *_LISTS, work=walking())
def least(*values: Value) -> Value:
    """The least of some numbers.

    CEL: math.least(3, 1.5) ⇒ 1.5
    """
    return _extreme(values, -1, "math.@min")


@function("math.@max", *_SINGLES, *_PAIRS, *_LISTS, work=walking())
def greatest(*values: Value) -> Value:
    """The greatest of some numbers.

    CEL: math.greatest([1, 2, 3]) ⇒ 3
    """
    return _extreme(values, 1, "math.@max")


def _whole(value: float, operate: Callable[[float], float]) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(float(operate(value)), value)


def round_half_away(value: float) -> float:
    """Return a double rounded to a whole number, halves away from zero.

    >>> round_half_away(2.5), round_half_away(-2.5)
    (3.0, -3.0)
    """
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return math.copysign(float(whole), value)


@function("math.ceil", "(double) -> double", since=(1,), work=instant)
def ceil(value: float) -> float:
    """The next whole number up.

    CEL: math.ceil(1.2) ⇒ 2.0
    """
    return _whole(value, math.ceil)


@function("math.floor", "(double) -> double", since=(1,), work=instant)
def floor(value: float) -> float:
    """The next whole number down.

    CEL: math.floor(1.8) ⇒ 1.0
    """
    return _whole(value, math.floor)


@function("math.round", "(double) -> double", since=(1,), work=instant)
def round_(value: float) -> float:
    """The nearest whole number, halves away from zero.

    CEL: math.round(-1.5) ⇒ -2.0
    """
    return round_half_away(value)


@function("math.trunc", "(double) -> double", since=(1,), work=instant)
def trunc(value: float) -> float:
    """The whole part.

    CEL: math.trunc(-1.8) ⇒ -1.0
    """
    return _whole(value, math.trunc)


@function("math.isInf", "(double) -> bool", since=(1,), work=instant)
def is_inf(value: float) -> bool:
    """Whether a double is infinite.

    CEL: math.isInf(1.0 / 0.0) ⇒ true
    """
    return math.isinf(value)


@function("math.isNaN", "(double) -> bool", since=(1,), work=instant)
def is_nan(value: float) -> bool:
    """Whether a double is not a number.

    CEL: math.isNaN(0.0 / 0.0) ⇒ true
    """
    return math.isnan(value)


@function("math.isFinite", "(double) -> bool", since=(1,), work=instant)
def is_finite(value: float) -> bool:
    """Whether a double is neither infinite nor NaN.

    CEL: math.isFinite(1.5) ⇒ true
    """
    return math.isfinite(value)


@function("math.abs", *_SINGLES, since=(1,), work=instant)
def absolute(value: Value) -> Value:
    """The number without its sign.

    CEL: math.abs(-3) ⇒ 3
    """
    if type(value) is int and value == INT_MIN:
        raise EvaluationError("integer overflow")
    return value if type(value) is Uint else abs(value)


@function("math.sign", *_SINGLES, since=(1,), work=instant)
def sign(value: Value) -> Value:
    """-1, 0 or 1, of the number's own type.

    CEL: math.sign(-0.5) ⇒ -1.0
    """
    if isinstance(value, float) and math.isnan(value):
        return value
    return type(value)((value > 0) - (value < 0))


def _signed(bits: int) -> int:
    bits &= _MASK
    return bits - 2**64 if bits >= 2**63 else bits


def _bitwise(one: Value, two: Value, result: int) -> Value:
    if type(one) is not type(two):
        raise no_such_overload()
    return Uint(result & _MASK) if type(one) is Uint else _signed(result)


@function("math.bitAnd", "(int, int) -> int", "(uint, uint) -> uint", since=(1,), work=instant)
def bit_and(one: Value, two: Value) -> Value:
    """The bits that both numbers have.

    CEL: math.bitAnd(3u, 5u) == 1u ⇒ true
    """
    return _bitwise(one, two, int(one) & int(two))


@function("math.bitOr", "(int, int) -> int", "(uint, uint) -> uint", since=(1,), work=instant)
def bit_or(one: Value, two: Value) -> Value:
    """The bits that either number has.

    CEL: math.bitOr(1, 2) ⇒ 3
    """
    return _bitwise(one, two, int(one) | int(two))


@function("math.bitXor", "(int, int) -> int", "(uint, uint) -> uint", since=(1,), work=instant)
def bit_xor(one: Value, two: Value) -> Value:
    """The bits in which the numbers differ.

    CEL: math.bitXor(1, 3) ⇒ 2
    """
    return _bitwise(one, two, int(one) ^ int(two))


@function("math.bitNot", "(int) -> int", "(uint) -> uint", since=(1,), work=instant)
def bit_not(value: Value) -> Value:
    """The other bits.

    CEL: math.bitNot(1) ⇒ -2
    """
    return Uint(~int(value) & _MASK) if type(value) is Uint else ~value


def _places(name: str, places: int) -> int:
    if places < 0:
        raise OperandError(f"{name}() negative offset", f"{name}() negative offset: {places}")
    return min(places, 64)


@function("math.bitShiftLeft", "(int, int) -> int", "(uint, int) -> uint", since=(1,), work=instant)
def bit_shift_left(value: Value, places: int) -> Value:
    """The bits moved up; those that leave 64 bits are lost.

    CEL: math.bitShiftLeft(1, 4) ⇒ 16
    """
    moved = int(value) << _places("math.bitShiftLeft", places)
    return Uint(moved & _MASK) if type(value) is Uint else _signed(moved)


@function("math.bitShiftRight", "(int, int) -> int", "(uint, int) -> uint", since=(1,), work=instant)
def bit_shift_right(value: Value, places: int) -> Value:
    """The bits moved down, filled with zeros.

    CEL: math.bitShiftRight(16, 4) ⇒ 1
    """
    moved = (int(value) & _MASK) >> _places("math.bitShiftRight", places)
    return Uint(moved) if type(value) is Uint else _signed(moved)


@function("math.sqrt", "(double) -> double", "(int) -> double", "(uint) -> double", since=(2,), work=instant)
def sqrt(value: Value) -> float:
    """The square root; NaN for negative numbers.

    CEL: math.sqrt(9) ⇒ 3.0
    """
    return math.sqrt(value) if value >= 0 else math.nan


MATH: Final = Library(
    "math",
    (
        least, greatest, ceil, floor, round_, trunc, is_inf, is_nan, is_finite, absolute, sign,
        bit_and, bit_or, bit_xor, bit_not, bit_shift_left, bit_shift_right, sqrt,
    ),
    macros={
        **{("least", count, True): _extreme_macro("math.least", "math.@min") for count in range(MAX_ARGUMENTS + 1)},
        **{
            ("greatest", count, True): _extreme_macro("math.greatest", "math.@max")
            for count in range(MAX_ARGUMENTS + 1)
        },
    },
    doc="Least and greatest, rounding, signs, bits and square roots.",
)  # fmt: skip
