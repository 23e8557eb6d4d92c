"""The standard library: operators, conversions, texts and times that every environment has.

Operators are declared here for the checker; the planner has their closures. This module must never declare what CEL
leaves to extensions.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.gofloat import float_verb_text
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.libraries.costs import by_regex, by_size, containment
from pyverno.lang.cel.runtime import access, arithmetic
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.times import (
    civil,
    duration_text,
    parse_duration,
    parse_timestamp,
    timestamp_text,
    zone_offset,
)
from pyverno.lang.cel.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    UINT_MAX,
    Duration,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    compare,
    equals,
    map_find,
    type_name,
)
from pyverno.lang.cel.work import comparing, instant, nodes, reading, together, walking

__all__ = ["CROSS_TYPE_COMPARISONS", "STANDARD_LIBRARY"]

_NS: Final = 10**9
_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")


# operators


def _ordering(name: str, wanted: tuple[int, ...], word: str) -> Declaration:
    def compares(left: Value, right: Value) -> bool:
        return compare(left, right) in wanted

    compares.__doc__ = f"Whether the left value is {word} the right one."
    return function(name, *(f"({kind}, {kind}) -> bool" for kind in _ORDERED), work=instant)(compares)


def _cross_ordering(name: str, wanted: tuple[int, ...], word: str) -> Declaration:
    def compares(left: Value, right: Value) -> bool:
        return compare(left, right) in wanted

    compares.__doc__ = f"Whether the left number is {word} the right one, of another numeric type."
    pairs = [(one, two) for one in _NUMBERS for two in _NUMBERS if one != two]
    return function(name, *(f"({one}, {two}) -> bool" for one, two in pairs), work=instant)(compares)


_ORDERINGS: Final = (
    ("_<_", (-1,), "less than"),
    ("_<=_", (-1, 0), "at most"),
    ("_>_", (1,), "greater than"),
    ("_>=_", (0, 1), "at least"),
)


@function("_==_", "(A, A) -> bool", work=nodes())
def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal; numbers compare by value across types.

    CEL: 1 == 1 ⇒ true
    """
    return equals(left, right)


@function("_!=_", "(A, A) -> bool", work=nodes())
def different(left: Value, right: Value) -> bool:
    """Whether two values differ.

    CEL: 'a' != 'b' ⇒ true
    """
    return not equals(left, right)


@function(
    "_+_",
    "(bytes, bytes) -> bytes",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(duration, timestamp) -> timestamp",
    "(timestamp, duration) -> timestamp",
    "(int, int) -> int",
    "(list(A), list(A)) -> list(A)",
    "(string, string) -> string",
    "(uint, uint) -> uint",
    work=together(reading(0), reading(1)),
)
def plus(left: Value, right: Value) -> Value:
    """The sum of numbers or times, or two texts or lists joined.

    CEL: 'a' + 'b' ⇒ 'ab'
    """
    return arithmetic.add(left, right)


@function(
    "_-_",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(int, int) -> int",
    "(timestamp, duration) -> timestamp",
    "(timestamp, timestamp) -> duration",
    "(uint, uint) -> uint",
    work=instant,
)
def minus(left: Value, right: Value) -> Value:
    """The difference of numbers or times.

    CEL: 5 - 7 ⇒ -2
    """
    return arithmetic.subtract(left, right)


@function("_*_", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint", work=instant)
def times(left: Value, right: Value) -> Value:
    """The product of two numbers.

    CEL: 6 * 7 ⇒ 42
    """
    return arithmetic.multiply(left, right)


@function("_/_", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint", work=instant)
def over(left: Value, right: Value) -> Value:
    """The quotient of two numbers; integers are cut toward zero.

    CEL: -7 / 2 ⇒ -3
    """
    return arithmetic.divide(left, right)


@function("_%_", "(int, int) -> int", "(uint, uint) -> uint", work=instant)
def modulus(left: Value, right: Value) -> Value:
    """The rest of an integer division, with the sign of the left number.

    CEL: -7 % 2 ⇒ -1
    """
    return arithmetic.modulo(left, right)


@function("-_", "(double) -> double", "(int) -> int", work=instant)
def negated(value: Value) -> Value:
    """The number with the other sign.

    CEL: -(3) ⇒ -3
    """
    return arithmetic.negate(value)


@function("!_", "(bool) -> bool", work=instant)
def inverted(value: Value) -> bool:
    """The other bool.

    CEL: !true ⇒ false
    """
    return not value


@function("_[_]", "(list(A), int) -> A", "(map(A, B), A) -> B", work=instant)
def indexed(value: Value, key: Value) -> Value:
    """The element of a list at an index, or the value of a map for a key.

    CEL: [1, 2][1] ⇒ 2
    """
    return access.index(value, key)


@function("@in", "(A, list(A)) -> bool", "(A, map(A, B)) -> bool", work=comparing(1))
def contained(value: Value, container: Value) -> bool:
    """Whether a list has an element, or a map has a key.

    CEL: 2 in [1, 2] ⇒ true
    """
    if isinstance(container, (list, tuple)):
        return any(equals(value, item) for item in container)
    return map_find(container, value) is not MISSING


# conversions


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
        text = value.strip()
        if text != value or "_" in value or not value:
            raise _unconvertible(value, "double")
        try:
            return float(value)
        except ValueError:
            raise _unconvertible(value, "double") from None
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


@function("duration", "(duration) -> duration", "(int) -> duration", "(string) -> duration", work=walking())
def duration(value: Value) -> Duration:
    """A span of time: from a text such as `1h30m`, or nanoseconds.

    CEL: duration('90s') == duration('1m30s') ⇒ true
    """
    if isinstance(value, str):
        return parse_duration(value)
    return Duration(value) if isinstance(value, int) else value


# texts


@function(
    "contains", "string.(string) -> bool", cost=containment, resolved_only=True, work=together(reading(0), reading(1))
)
def contains(text: str, part: str) -> bool:
    """Whether a text contains another.

    CEL: 'abc'.contains('b') ⇒ true
    """
    return part in text


@function("startsWith", "string.(string) -> bool", cost=by_size(), resolved_only=True, work=reading(1))
def starts_with(text: str, part: str) -> bool:
    """Whether a text starts with another.

    CEL: 'abc'.startsWith('ab') ⇒ true
    """
    return text.startswith(part)


@function("endsWith", "string.(string) -> bool", cost=by_size(), resolved_only=True, work=reading(1))
def ends_with(text: str, part: str) -> bool:
    """Whether a text ends with another.

    CEL: 'abc'.endsWith('bc') ⇒ true
    """
    return text.endswith(part)


@function(
    "matches",
    "(string, string) -> bool",
    "string.(string) -> bool",
    cost=by_regex(),
    resolved_only=True,
    metered=True,
    pattern=1,
    work=instant,
)
def matches(evaluation: Evaluation, text: str, pattern: str) -> bool:
    """Whether an RE2 pattern is found anywhere in a text.

    CEL: 'abc'.matches('^a.c$') ⇒ true
    """
    return evaluation.pattern("matches", pattern, text).found(text)


# times


def _getter(name: str, part: str, doc: str) -> Declaration:
    def get(value: Timestamp, zone: str = "") -> int:
        moment = civil(value, zone_offset(value, zone))
        return _PARTS[part](moment.date, moment.second_of_day, moment.ns, moment.weekday)

    get.__doc__ = doc
    return function(name, "timestamp.() -> int", "timestamp.(string) -> int", work=instant)(get)


_PARTS: Final[dict[str, Callable[[datetime.date, int, int, int], int]]] = {
    "year": lambda date, _second, _ns, _weekday: date.year,
    "month": lambda date, _second, _ns, _weekday: date.month - 1,
    "day_of_year": lambda date, _second, _ns, _weekday: date.timetuple().tm_yday - 1,
    "day_of_month": lambda date, _second, _ns, _weekday: date.day - 1,
    "date": lambda date, _second, _ns, _weekday: date.day,
    "weekday": lambda _date, _second, _ns, weekday: weekday,
    "hours": lambda _date, second, _ns, _weekday: second // 3_600,
    "minutes": lambda _date, second, _ns, _weekday: second // 60 % 60,
    "seconds": lambda _date, second, _ns, _weekday: second % 60,
    "milliseconds": lambda _date, _second, ns, _weekday: ns // 1_000_000,
}
_GETTERS: Final = (
    _getter("getFullYear", "year", "The year.\n\nCEL: timestamp(0).getFullYear() ⇒ 1970"),
    _getter("getMonth", "month", "The month, January = 0.\n\nCEL: timestamp(0).getMonth() ⇒ 0"),
    _getter("getDayOfYear", "day_of_year", "The day of the year from 0.\n\nCEL: timestamp(0).getDayOfYear() ⇒ 0"),
    _getter("getDayOfMonth", "day_of_month", "The day of the month from 0.\n\nCEL: timestamp(0).getDayOfMonth() ⇒ 0"),
    _getter("getDate", "date", "The day of the month from 1.\n\nCEL: timestamp(0).getDate() ⇒ 1"),
    _getter("getDayOfWeek", "weekday", "The day of the week, Sunday = 0.\n\nCEL: timestamp(0).getDayOfWeek() ⇒ 4"),
    _getter("getHours", "hours", "The hour.\n\nCEL: timestamp(7200).getHours() ⇒ 2"),
    _getter("getMinutes", "minutes", "The minute.\n\nCEL: timestamp(90).getMinutes() ⇒ 1"),
    _getter("getSeconds", "seconds", "The second.\n\nCEL: timestamp(90).getSeconds() ⇒ 30"),
    _getter("getMilliseconds", "milliseconds", "The millisecond.\n\nCEL: timestamp(9).getMilliseconds() ⇒ 0"),
)


def _span(name: str, unit: int, doc: str) -> Declaration:
    def get(value: Duration) -> int:
        whole: int = abs(value.ns) // unit
        return -whole if value.ns < 0 else whole

    get.__doc__ = doc
    return function(name, "duration.() -> int", work=instant)(get)


_SPANS: Final = (
    _span("getHours", 3_600 * _NS, "The whole hours of a duration.\n\nCEL: duration('90m').getHours() ⇒ 1"),
    _span("getMinutes", 60 * _NS, "The whole minutes of a duration.\n\nCEL: duration('90s').getMinutes() ⇒ 1"),
    _span("getSeconds", _NS, "The whole seconds of a duration.\n\nCEL: duration('1m').getSeconds() ⇒ 60"),
)


@function("getMilliseconds", "duration.() -> int", work=instant)
def get_milliseconds(value: Duration) -> int:
    """The milliseconds of a duration beyond its whole seconds.

    CEL: duration('1.5s').getMilliseconds() ⇒ 500
    """
    rest = abs(value.ns) % _NS // 1_000_000
    return -rest if value.ns < 0 else rest


STANDARD_LIBRARY: Final = Library(
    "standard",
    (
        *(_ordering(name, wanted, word) for name, wanted, word in _ORDERINGS),
        equal, different, plus, minus, times, over, modulus, negated, inverted, indexed, contained,
        size, member_size, type_, dyn, bool_, bytes_, double, int_, uint, string, string_of_bytes,
        timestamp, duration, contains, starts_with, ends_with, matches,
        *_GETTERS, *_SPANS, get_milliseconds,
    ),
    introduced="1.0",
    doc="Operators, conversions, texts and times.",
)  # fmt: skip
CROSS_TYPE_COMPARISONS: Final = Library(
    "cross-type comparisons",
    tuple(_cross_ordering(name, wanted, word) for name, wanted, word in _ORDERINGS),
    introduced="1.28",
    doc="Ordering between int, uint and double.",
)
