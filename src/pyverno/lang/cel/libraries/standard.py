"""The standard library: operators, conversions, texts and times that every environment has.

Operators are declared here for the checker; the planner has their closures.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

from pyverno.lang.cel import arithmetic
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.libraries.conversions import (
    bool_,
    bytes_,
    double,
    duration,
    dyn,
    int_,
    member_size,
    size,
    string,
    string_of_bytes,
    timestamp,
    type_,
    uint,
)
from pyverno.lang.cel.libraries.costs import by_regex, by_size, containment
from pyverno.lang.cel.runtime import access
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.scalars import Duration, Timestamp
from pyverno.lang.cel.times import (
    civil,
    zone_offset,
)
from pyverno.lang.cel.values import MISSING, Value, compare, equals, map_find
from pyverno.lang.cel.work import comparing, instant, nodes, reading, together

__all__ = ["CROSS_TYPE_COMPARISONS", "SPECIFIED_LIBRARY", "STANDARD_LIBRARY"]

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
# cel-go: all milliseconds of a duration; those beyond its seconds in the specification
_ALL_MILLISECONDS: Final = _span(
    "getMilliseconds",
    _NS // 1_000,
    "The whole milliseconds of a duration.\n\nCEL: duration('1.5s').getMilliseconds() ⇒ 1500",
)


@function("getMilliseconds", "duration.() -> int", work=instant)
def get_milliseconds(value: Duration) -> int:
    """The milliseconds of a duration beyond its whole seconds.

    CEL: duration('1.5s').getMilliseconds() ⇒ 500
    """
    rest = abs(value.ns) % _NS // 1_000_000
    return -rest if value.ns < 0 else rest


_DECLARATIONS: Final = (
    *(_ordering(name, wanted, word) for name, wanted, word in _ORDERINGS),
    equal, different, plus, minus, times, over, modulus, negated, inverted, indexed, contained,
    size, member_size, type_, dyn, bool_, bytes_, double, int_, uint, string, string_of_bytes,
    timestamp, duration, contains, starts_with, ends_with, matches,
    *_GETTERS, *_SPANS,
)  # fmt: skip
STANDARD_LIBRARY: Final = Library(
    "standard",
    (*_DECLARATIONS, _ALL_MILLISECONDS),
    introduced="1.0",
    doc="Operators, conversions, texts and times.",
)
SPECIFIED_LIBRARY: Final = Library(
    "standard",
    (*_DECLARATIONS, get_milliseconds),
    introduced="1.0",
    doc="Operators, conversions, texts and times, as in the specification of CEL.",
)
CROSS_TYPE_COMPARISONS: Final = Library(
    "cross-type comparisons",
    tuple(_cross_ordering(name, wanted, word) for name, wanted, word in _ORDERINGS),
    introduced="1.28",
    doc="Ordering between int, uint and double.",
)
