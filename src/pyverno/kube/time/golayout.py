"""Parse times by Go's layouts (`2006-01-02T15:04:05Z07:00`).

Leniency and error texts are those of Go's time package. `gotime` formats.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from pyverno.errors import ValueSyntaxError
from pyverno.kube.names import MAX_NAME
from pyverno.kube.time.civil import days_before_month, days_in_month, is_leap
from pyverno.kube.time.duration import quote_time
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["DAYS", "MONTHS", "Chunk", "Fields", "chunks", "read_fields"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

Chunk: TypeAlias = tuple[str, str]
"""Literal text and the element behind it; the element is empty at the end of the layout."""

# In the order in which Go tries them at one position.
_ELEMENT = regex(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|15|1|2006|2|__2|_2(?!006)|3|4|5|PM|pm"
    r"|-070000|-07:00:00|-0700|-07:00|-07|Z070000|Z07:00:00|Z0700|Z07:00|Z07|[.,](?:0+|9+)(?![0-9])"
)


@dataclass(slots=True)
class Fields:
    """The fields of a parsed text; -1 (or None for the zone) for missing ones."""

    year: int = 0
    month: int = -1
    day: int = -1
    year_day: int = -1
    hour: int = 0
    minute: int = 0
    second: int = 0
    nanosecond: int = 0
    half: str = ""
    is_utc: bool = False
    offset: int | None = None
    zone: str = ""


class _BadError(Exception):
    """The text does not fit the element."""


class _RangeError(Exception):
    """A number is outside its range; the argument names which, `rest` is unused text."""


def chunks(layout: str) -> tuple[Chunk, ...]:
    """Cut a layout into literal texts and elements.

    >>> chunks("2006/01")
    (('', '2006'), ('/', '01'), ('', ''))
    """
    return _chunks(layout) if len(layout) <= MAX_NAME else _cut(layout)


def _cut(layout: str) -> tuple[Chunk, ...]:
    found: list[Chunk] = []
    position = 0
    for element in _ELEMENT.finditer(layout):
        found.append((layout[position : element.start()], element[0]))
        position = element.end()
    found.append((layout[position:], ""))
    return tuple(found)


_chunks = lru_cache(maxsize=256)(_cut)


def read_fields(layout: str, text: str) -> Fields:
    """Read a text by a layout; raises `ValueSyntaxError` with Go's text."""
    fields = Fields()
    rest = text
    parts = chunks(layout)
    for index, (prefix, element) in enumerate(parts):
        rest, is_skipped = _skip(rest, prefix)
        if not is_skipped:
            raise _cannot_parse(text, layout, rest, prefix)
        if not element:
            if rest:
                raise ValueSyntaxError(f"parsing time {quote_time(text)}: extra text: {quote_time(rest)}")
            break
        following = parts[index + 1] if index + 1 < len(parts) else ("", "")
        try:
            rest = _reader(element)(fields, rest, element, following)
        except _BadError:
            raise _cannot_parse(text, layout, rest, element) from None
        except _RangeError as error:
            raise ValueSyntaxError(f"parsing time {quote_time(text)}: {error} out of range") from None
    if fields.half == "PM" and fields.hour < 12:
        fields.hour += 12
    elif fields.half == "AM" and fields.hour == 12:
        fields.hour = 0
    problem = _settle_day(fields)
    if problem:
        raise ValueSyntaxError(f"parsing time {quote_time(text)}: {problem}")
    return fields


def _cannot_parse(text: str, layout: str, rest: str, element: str) -> ValueSyntaxError:
    where = f"parsing time {quote_time(text)} as {quote_time(layout)}"
    return ValueSyntaxError(f"{where}: cannot parse {quote_time(rest)} as {quote_time(element)}")


def _skip(text: str, prefix: str) -> tuple[str, bool]:
    """Drop the literal prefix; runs of blanks fit runs of blanks of any length."""
    position, at = 0, 0
    while at < len(prefix):
        if prefix[at] == " ":
            if position < len(text) and text[position] != " ":
                return text[position:], False
            while at < len(prefix) and prefix[at] == " ":
                at += 1
            while position < len(text) and text[position] == " ":
                position += 1
            continue
        if position >= len(text) or text[position] != prefix[at]:
            return text[position:], False
        at += 1
        position += 1
    return text[position:], True


def _settle_day(fields: Fields) -> str:
    """Work out month and day; returns the problem, or the empty text."""
    if fields.year_day >= 0:
        problem = _from_year_day(fields)
        if problem:
            return problem
    fields.month = max(fields.month, 1)
    fields.day = 1 if fields.day < 0 else fields.day
    if fields.day < 1 or fields.day > days_in_month(fields.year, fields.month):
        return "day out of range"
    return ""


def _from_year_day(fields: Fields) -> str:
    number = fields.year_day
    month = day = 0
    if is_leap(fields.year):
        if number == 60:
            month, day = 2, 29
        elif number > 60:
            number -= 1
    if not 1 <= number <= 365:
        return "day-of-year out of range"
    if not month:
        month = (number - 1) // 31 + 1
        if days_before_month(month + 1) < number:
            month += 1
        day = number - days_before_month(month)
    if fields.month >= 0 and fields.month != month:
        return "day-of-year does not match month"
    if fields.day >= 0 and fields.day != day:
        return "day-of-year does not match day"
    fields.month, fields.day = month, day
    return ""


def _digit(text: str, index: int) -> bool:
    return index < len(text) and "0" <= text[index] <= "9"


def _number(text: str, *, is_fixed: bool) -> tuple[int, str]:
    """Read one or two digits (exactly two when fixed)."""
    if not _digit(text, 0) or (is_fixed and not _digit(text, 1)):
        raise _BadError
    width = 2 if _digit(text, 1) else 1
    return int(text[:width]), text[width:]


def _ranged(name: str, low: int, high: int) -> Callable[[Fields, str, str, Chunk], str]:
    def read(fields: Fields, text: str, element: str, _following: Chunk) -> str:
        value, rest = _number(text, is_fixed=element[0] == "0")
        if not low <= value <= high:
            raise _RangeError(name)
        setattr(fields, name, value)
        return rest

    return read


def _long_year(fields: Fields, text: str, _element: str, _following: Chunk) -> str:
    if len(text) < 4 or not all(_digit(text, index) for index in range(4)):
        raise _BadError
    fields.year = int(text[:4])
    return text[4:]


def _short_year(fields: Fields, text: str, _element: str, _following: Chunk) -> str:
    if not _digit(text, 1) or not (_digit(text, 0) or text[0] in "+-"):
        raise _BadError
    year = int(text[:2])  # COMPAT: a sign is read as part of the two characters
    fields.year = year + (1900 if year >= 69 else 2000)
    return text[2:]


def _name(text: str, names: tuple[str, ...]) -> tuple[int, str]:
    for index, name in enumerate(names):
        given = text[: len(name)]
        if given.isascii() and given.lower() == name.lower():
            return index, text[len(name) :]
    raise _BadError


def _month_name(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    index, rest = _name(text, MONTHS if element == "January" else tuple(name[:3] for name in MONTHS))
    fields.month = index + 1
    return rest


def _day_name(_fields: Fields, text: str, element: str, _following: Chunk) -> str:
    return _name(text, DAYS if element == "Monday" else tuple(name[:3] for name in DAYS))[1]


def _day(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    if element == "_2" and text[:1] == " ":
        text = text[1:]
    fields.day, rest = _number(text, is_fixed=element == "02")
    return rest


def _year_day(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    for _ in range(2):
        if element == "__2" and text[:1] == " ":
            text = text[1:]
    width = 0
    while width < 3 and _digit(text, width):
        width += 1
    if not width or (element == "002" and width != 3):
        raise _BadError
    fields.year_day = int(text[:width])
    return text[width:]


def _second(fields: Fields, text: str, element: str, following: Chunk) -> str:
    fields.second, rest = _number(text, is_fixed=element == "05")
    if fields.second >= 60:
        raise _RangeError("second")
    # A fraction is read even when the layout has none, unless the layout's next element is one.
    if rest[:1] in (".", ",") and _digit(rest, 1) and following[1][:1] not in (".", ","):
        return _fraction(fields, rest)
    return rest


def _fraction(fields: Fields, text: str) -> str:
    end = 1
    while _digit(text, end):
        end += 1
    fields.nanosecond = int(text[1 : min(end, 10)].ljust(9, "0"))
    return text[end:]


def _layout_fraction(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    if element[1] == "9":
        if text[:1] not in (".", ",") or not _digit(text, 1):
            return text
        return _fraction(fields, text)
    width = len(element)
    if len(text) < width or text[0] not in ".,":
        raise _BadError
    digits = text[1:width][:9]
    if digits[0] in "+-" and len(digits) > 1 and all(_digit(digits, index) for index in range(1, len(digits))):
        if digits[0] == "-" and int(digits[1:]):
            raise _RangeError("fractional second")
        digits = digits[1:].rjust(len(digits), "0")
    if not all(_digit(digits, index) for index in range(len(digits))):
        raise _BadError
    fields.nanosecond = int(digits.ljust(9, "0"))
    return text[width:]


def _half(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    halves = ("PM", "AM") if element == "PM" else ("pm", "am")
    if text[:2] not in halves:
        raise _BadError
    if fields.half != "PM":  # the later half of the day wins when a layout names both
        fields.half = text[:2].upper()
    return text[2:]


_OFFSETS = {
    "0700": regex(r"(.)(..)(..)", re.DOTALL),
    "07:00": regex(r"(.)(..):(..)", re.DOTALL),
    "07": regex(r"(.)(..)", re.DOTALL),
    "070000": regex(r"(.)(..)(..)(..)", re.DOTALL),
    "07:00:00": regex(r"(.)(..):(..):(..)", re.DOTALL),
}


def _offset(fields: Fields, text: str, element: str, _following: Chunk) -> str:
    if element[0] == "Z" and text[:1] == "Z":
        fields.is_utc = True
        return text[1:]
    found = _OFFSETS[element[1:]].match(text)
    if found is None:
        raise _BadError
    sign, *parts = found.groups()
    numbers: list[int] = []
    is_bad = False
    for part in parts:
        if not (_digit(part, 0) and _digit(part, 1)):
            is_bad = True
            break
        numbers.append(int(part))
    hours, minutes, seconds = (*numbers, 0, 0, 0)[:3]
    # Go lets people write 24 hours or 60 minutes; a range error comes before any other, the finest one wins.
    for value, limit, name in ((seconds, 60, "second"), (minutes, 60, "minute"), (hours, 24, "hour")):
        if value > limit:
            raise _RangeError(f"time zone offset {name}")
    if is_bad or sign not in "+-":
        raise _BadError
    total = (hours * 60 + minutes) * 60 + seconds
    fields.offset = -total if sign == "-" else total
    return text[found.end() :]


_SIGNED = regex(r"[+-]([0-9]{1,18})")
_UPPER = regex(r"[A-Z]{0,6}")


def _zone(fields: Fields, text: str, _element: str, _following: Chunk) -> str:
    if text.startswith("UTC"):
        fields.is_utc = True
        return text[3:]
    length = _zone_length(text)
    if not length:
        raise _BadError
    fields.zone = text[:length]
    return text[length:]


def _zone_length(text: str) -> int:
    """Return the length of the zone abbreviation at the start of a text, 0 for none."""
    if len(text) < 3:
        return 0
    if text[:4] in ("ChST", "MeST"):
        return 4
    if text.startswith("GMT"):
        return 3 + _signed_length(text[3:])
    if text[0] in "+-":
        return _signed_length(text)
    found = _UPPER.match(text)
    count = found.end() if found else 0
    if count == 3:
        return 3
    if count == 4:
        return 4 if text[3] == "T" or text[:4] == "WITA" else 0
    return 5 if count == 5 and text[4] == "T" else 0


def _signed_length(text: str) -> int:
    found = _SIGNED.match(text)
    return found.end() if found and int(found[1]) <= 23 else 0


_READERS: dict[str, Callable[[Fields, str, str, Chunk], str]] = {
    "January": _month_name,
    "Jan": _month_name,
    "Monday": _day_name,
    "Mon": _day_name,
    "MST": _zone,
    "002": _year_day,
    "__2": _year_day,
    "01": _ranged("month", 1, 12),
    "1": _ranged("month", 1, 12),
    "02": _day,
    "_2": _day,
    "2": _day,
    "03": _ranged("hour", 0, 12),
    "3": _ranged("hour", 0, 12),
    "15": _ranged("hour", 0, 23),
    "04": _ranged("minute", 0, 59),
    "4": _ranged("minute", 0, 59),
    "05": _second,
    "5": _second,
    "06": _short_year,
    "2006": _long_year,
    "PM": _half,
    "pm": _half,
}


def _reader(element: str) -> Callable[[Fields, str, str, Chunk], str]:
    found = _READERS.get(element)
    if found is not None:
        return found
    return _layout_fraction if element[0] in ".," else _offset
