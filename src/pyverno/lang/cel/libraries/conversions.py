"""Conversions of CEL's standard library: sizes, types, numbers, texts, bytes and times."""

from __future__ import annotations

import math
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.gofloat import float_verb_text, parse_float
from pyverno.lang.cel import arithmetic
from pyverno.lang.cel.declarations import function
from pyverno.lang.cel.libraries.costs import by_size
from pyverno.lang.cel.scalars import Duration, Timestamp, TypeValue, Uint
from pyverno.lang.cel.times import (
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
)
from pyverno.lang.cel.values import INT_MAX, INT_MIN, UINT_MAX, Value, type_name
from pyverno.lang.cel.work import instant, reading, walking

__all__ = [
    "bool_",
    "bytes_",
    "double",
    "duration",
    "dyn",
    "int_",
    "member_size",
    "size",
    "string",
    "string_of_bytes",
    "timestamp",
    "type_",
    "uint",
]

_NS: Final = 10**9


@function("size", "(bytes) -> int", "(list(A)) -> int", "(map(A, B)) -> int", "(string) -> int", work=instant)
def size(value: Value) -> int:
    """The number of code points, bytes, elements or entries.

    CEL: size('abc') ⇒ 3
    """
    return len(value)


@function("size", "bytes.() -> int", "list(A).() -> int", "map(A, B).() -> int", "string.() -> int", work=instant)
def member_size(value: Value) -> int:
    """The number of code points, bytes, elements or entries.

    CEL: [1, 2].size() ⇒ 2
    """
    return len(value)


@function("type", "(A) -> type(A)", work=instant)
def type_(value: Value) -> TypeValue:
    """The type of a value.

    CEL: type(1) == int ⇒ true
    """
    return TypeValue(type_name(value))


@function("dyn", "(A) -> dyn", work=instant)
def dyn(value: Value) -> Value:
    """The value itself, without its static type.

    CEL: dyn(1) == 'a' ⇒ false
    """
    return value


_BOOL_TEXTS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


@function("bool", "(bool) -> bool", "(string) -> bool", work=instant)
def bool_(value: Value) -> bool:
    """A bool, or the bool that a text names.

    CEL: bool('true') ⇒ true
    """
    if isinstance(value, str):
        if value not in _BOOL_TEXTS:
            raise _unconvertible(value, "bool")
        return _BOOL_TEXTS[value]
    return bool(value)


@function("bytes", "(bytes) -> bytes", "(string) -> bytes", cost=by_size(), resolved_only=True, work=reading())
def bytes_(value: Value) -> bytes:
    """The UTF-8 bytes of a text.

    CEL: bytes('a') == b'a' ⇒ true
    """
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


@function("double", "(double) -> double", "(int) -> double", "(string) -> double", "(uint) -> double", work=reading())
def double(value: Value) -> float:
    """A number as double, or the double that a text names.

    CEL: double('1.5') ⇒ 1.5
    """
    if isinstance(value, str):
        number = parse_float(value)
        if number is None:
            raise _unconvertible(value, "double")
        return number
    return float(value)


@function(
    "int",
    *(f"({kind}) -> int" for kind in ("int", "double", "duration", "string", "timestamp", "uint")),
    work=reading(),
)
def int_(value: Value) -> int:
    """An integer: doubles are cut, texts read, durations in nanoseconds, timestamps in seconds.

    CEL: int(3.9) ⇒ 3
    """
    if isinstance(value, str):
        return _integer_text(value, "int", INT_MIN, INT_MAX)
    if isinstance(value, Timestamp):
        return value.ns // _NS
    if isinstance(value, Duration):
        return value.ns
    if isinstance(value, float):
        return _cut(value, -(2.0**63), 2.0**63, "integer overflow", open_low=True)
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return int(value)


@function("uint", *(f"({kind}) -> uint" for kind in ("uint", "double", "int", "string")), work=reading())
def uint(value: Value) -> Uint:
    """An unsigned integer; doubles are cut, texts read.

    CEL: uint('7') == 7u ⇒ true
    """
    if isinstance(value, str):
        return Uint(_integer_text(value, "uint", 0, UINT_MAX))
    if isinstance(value, float):
        return Uint(_cut(value, 0.0, 2.0**64, "unsigned integer overflow"))
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _cut(value: float, low: float, high: float, message: str, *, open_low: bool = False) -> int:
    if not math.isfinite(value) or value >= high or value < low or (open_low and value == low):
        raise EvaluationError(message)
    return int(value)


def _integer_text(text: str, kind: str, low: int, high: int) -> int:
    digits = text[1:] if text[:1] == "-" or (text[:1] == "+" and kind == "int") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 40:
        raise _unconvertible(text, kind)
    number = int(text)
    if not low <= number <= high or (kind == "uint" and text[:1] == "-"):
        raise _unconvertible(text, kind)
    return number


def _unconvertible(value: Value, kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{kind}'")


@function("string", "(bytes) -> string", cost=by_size(), resolved_only=True, work=reading())
def string_of_bytes(value: bytes) -> str:
    """The text that UTF-8 bytes spell.

    CEL: string(b'abc') ⇒ 'abc'
    """
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


@function(
    "string",
    *(f"({kind}) -> string" for kind in ("string", "bool", "double", "duration", "int", "timestamp", "uint")),
    work=reading(),
)
def string(value: Value) -> str:
    """The text of a value.

    CEL: string(1.5) ⇒ '1.5'
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_verb_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    return str(int(value))


@function("timestamp", "(timestamp) -> timestamp", "(int) -> timestamp", "(string) -> timestamp", work=reading())
def timestamp(value: Value) -> Timestamp:
    """A moment: from an RFC 3339 text, or seconds since 1970.

    CEL: timestamp('1970-01-01T00:01:00Z') == timestamp(60) ⇒ true
    """
    if isinstance(value, str):
        return parse_timestamp(value)
    return value if isinstance(value, Timestamp) else arithmetic.checked_timestamp(value * _NS)


@function("duration", "(duration) -> duration", "(string) -> duration", work=walking())
def duration(value: Value) -> Duration:
    """A span of time from a text such as `1h30m`.

    CEL: duration('90s') == duration('1m30s') ⇒ true
    """
    return parse_duration(value) if isinstance(value, str) else value
