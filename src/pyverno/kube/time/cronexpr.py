"""Cron lines of five to seven fields as the cronexpr library reads them: `L`, `W`, `#`, seconds and years.

The schedules of cleanup and deleting policies have this form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.civil import days_from_civil, days_in_month, weekday
from pyverno.kube.time.duration import SECOND
from pyverno.kube.time.gotime import GoTime
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["CronExpression", "parse_cronexpr"]

_MACROS = {
    "@yearly": "0 0 0 1 1 * *",
    "@annually": "0 0 0 1 1 * *",
    "@monthly": "0 0 0 1 * * *",
    "@weekly": "0 0 0 * * 0 *",
    "@daily": "0 0 0 * * * *",
    "@hourly": "0 0 * * * * *",
}
_MACRO = regex("|".join(_MACROS))
_WORD = regex(r"[^\t\n\f\r ]+")
_NUMBER = regex(r"[0-9]+")
_MONTH_NAMES = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAY_NAMES = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
_TIME = {**{str(n): n for n in range(60)}, **{f"0{n}": n for n in range(10)}}
_MONTHS = {
    **{str(n): n for n in range(1, 13)},
    **{f"0{n}": n for n in range(1, 10)},
    **{name: index + 1 for index, name in enumerate(_MONTH_NAMES)},
    **{name[:3]: index + 1 for index, name in enumerate(_MONTH_NAMES)},
}
_WEEKDAYS = {
    **{str(n): n % 7 for n in range(8)},
    # COMPAT: two-digit days of the week are accepted, and all of them mean Sunday.
    **{f"0{n}": 0 for n in range(8)},
    **{name: index for index, name in enumerate(_DAY_NAMES)},
    **{name[:3]: index for index, name in enumerate(_DAY_NAMES)},
}


@dataclass(frozen=True, slots=True)
class _Form:
    """One field: its name in messages, its bounds and the values it knows by text."""

    name: str
    low: int
    high: int
    values: dict[str, int]


_SECOND_FORM = _Form("second", 0, 59, _TIME)
_MINUTE = _Form("minute", 0, 59, _TIME)
_HOUR = _Form("hour", 0, 23, {text: value for text, value in _TIME.items() if value < 24})
_DAY = _Form("day-of-month", 1, 31, {text: value for text, value in _TIME.items() if 1 <= value <= 31})
_MONTH = _Form("month", 1, 12, _MONTHS)
_WEEKDAY = _Form("day-of-week", 0, 6, _WEEKDAYS)
_YEAR = _Form("year", 1970, 2099, {str(n): n for n in range(1970, 2100)})
_STEPS = {**_TIME, **_YEAR.values}


@dataclass(frozen=True, slots=True)
class _Directive:
    """One entry of a field: the values it stands for, None when only the two day fields may know it."""

    text: str
    values: range | None
    is_all: bool = False


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A parsed line; `next` gives its due times.

    >>> str(parse_cronexpr("0 12 L * *").next(GoTime(0)))
    '1970-01-31T12:00:00Z'
    """

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: tuple[int, ...]
    years: tuple[int, ...]
    days: _Days
    weekdays: _Weekdays

    def next(self, after: GoTime) -> GoTime | None:
        """Return the first due time after an instant, at that instant's offset; None after 2099 or never."""
        if not (self.seconds and self.minutes and self.hours and self.months):
            return None
        year, month, day = after.date
        clock = after.clock
        for due_year in self.years[bisect_left(self.years, year) :]:
            for due_month in self.months:
                if (due_year, due_month) < (year, month):
                    continue
                for due_day in self._days_of(due_year, due_month):
                    if (due_year, due_month, due_day) < (year, month, day):
                        continue
                    is_today = (due_year, due_month, due_day) == (year, month, day)
                    found = self._time_after(clock if is_today else (-1, -1, -1))
                    if found is not None:
                        wall = days_from_civil(due_year, due_month, due_day) * 86_400 + found
                        return GoTime((wall - after.offset) * SECOND, after.offset, after.zone)
        return None

    def _time_after(self, clock: tuple[int, int, int]) -> int | None:
        """Return the first due second of a day that is after a time of day."""
        for hour in self.hours:
            if hour < clock[0]:
                continue
            for minute in self.minutes:
                if (hour, minute) < clock[:2]:
                    continue
                for second in self.seconds:
                    if (hour, minute, second) > clock:
                        return hour * 3600 + minute * 60 + second
        return None

    def _days_of(self, year: int, month: int) -> list[int]:
        last = days_in_month(year, month)
        if not self.days.is_restricted and not self.weekdays.is_restricted:
            return list(range(1, last + 1))
        found: set[int] = set()
        if self.days.is_restricted:
            found |= self.days.of_month(year, month, last)
        if self.weekdays.is_restricted:
            found |= self.weekdays.of_month(year, month, last)
        return sorted(found)


@dataclass(frozen=True, slots=True)
class _Days:
    """The field day of month."""

    is_restricted: bool
    days: frozenset[int]
    workdays: frozenset[int]
    has_last: bool
    has_last_workday: bool

    def of_month(self, year: int, month: int, last: int) -> set[int]:
        """Return the due days of one month."""
        found = {day for day in self.days if day <= last}
        if self.has_last:
            found.add(last)
        if self.has_last_workday:
            found.add(_workday(year, month, last, last))
        found.update(_workday(year, month, day, last) for day in self.workdays if day <= last)
        return found


@dataclass(frozen=True, slots=True)
class _Weekdays:
    """The field day of week; `numbered` holds pairs of week (from 0) and day."""

    is_restricted: bool
    days: frozenset[int]
    numbered: frozenset[tuple[int, int]]
    last: frozenset[int]

    def of_month(self, year: int, month: int, last: int) -> set[int]:
        """Return the due days of one month."""
        first = weekday(days_from_civil(year, month, 1))
        found = {day for day in range(1, last + 1) if (first + day - 1) % 7 in self.days}
        numbered = {1 + 7 * week + (day - first) % 7 for week, day in self.numbered}
        found |= {day for day in numbered if day <= last}
        found |= {day for day in range(last - 6, last + 1) if (first + day - 1) % 7 in self.last}
        return found


def parse_cronexpr(text: str) -> CronExpression:
    """Read five fields, six (with year) or seven (with second and year); further ones are ignored.

    Raises `ValueSyntaxError` with the library's text.

    >>> str(parse_cronexpr("@daily").next(GoTime(0)))
    '1970-01-02T00:00:00Z'
    """
    fields = _WORD.findall(_MACRO.sub(lambda found: _MACROS[found[0]], text))
    if len(fields) < 5:
        raise ValueSyntaxError("missing field(s)")
    seconds: tuple[int, ...] = (0,)
    if len(fields) >= 7:
        seconds = _plain(fields.pop(0), _SECOND_FORM)
    minutes = _plain(fields[0], _MINUTE)
    hours = _plain(fields[1], _HOUR)
    days = _days(fields[2])
    months = _plain(fields[3], _MONTH)
    weekdays = _weekdays(fields[4])
    years = _plain(fields[5], _YEAR) if len(fields) > 5 else tuple(range(1970, 2100))
    return CronExpression(seconds, minutes, hours, months, years, days, weekdays)


def _plain(text: str, form: _Form) -> tuple[int, ...]:
    found: set[int] = set()
    for directive in _directives(text, form):
        if directive.values is None:
            raise ValueSyntaxError(f"syntax error in {form.name} field: '{directive.text}'")
        if directive.is_all:
            return tuple(directive.values)
        found.update(directive.values)
    return tuple(sorted(found))


def _days(text: str) -> _Days:
    days: set[int] = set()
    workdays: set[int] = set()
    directives = _directives(text, _DAY)
    words = {directive.text.lower() for directive in directives if directive.values is None}
    for directive in directives:
        lower = directive.text.lower()
        if directive.values is not None:
            days.update(directive.values)
        elif lower.endswith("w") and lower[:-1] in _DAY.values:
            workdays.add(_DAY.values[lower[:-1]])
        elif lower not in ("l", "lw"):
            raise ValueSyntaxError(f"syntax error in day-of-month field: '{directive.text}'")
    return _Days(_is_restricted(directives), frozenset(days), frozenset(workdays), "l" in words, "lw" in words)


def _weekdays(text: str) -> _Weekdays:
    days: set[int] = set()
    numbered: set[tuple[int, int]] = set()
    last: set[int] = set()
    directives = _directives(text, _WEEKDAY)
    for directive in directives:
        lower = directive.text.lower()
        name, hash_mark, week = lower.partition("#")
        if directive.values is not None:
            days.update(directive.values)
        elif lower.endswith("l") and lower[:-1] in _WEEKDAYS:
            last.add(_WEEKDAYS[lower[:-1]])
        elif hash_mark and name in _WEEKDAYS and week in ("1", "2", "3", "4", "5"):
            numbered.add((int(week) - 1, _WEEKDAYS[name]))
        else:
            raise ValueSyntaxError(f"syntax error in day-of-week field: '{directive.text}'")
    return _Weekdays(_is_restricted(directives), frozenset(days), frozenset(numbered), frozenset(last))


def _is_restricted(directives: Iterable[_Directive]) -> bool:
    return not any(directive.is_all for directive in directives)


def _directives(text: str, form: _Form) -> list[_Directive]:
    parts = [part for part in text.split(",") if part]
    if not parts:
        raise ValueSyntaxError(f"{form.name} field: missing directive")
    return [_directive(part, form) for part in parts]


def _directive(text: str, form: _Form) -> _Directive:
    lower = text.lower()
    if lower in ("*", "?"):
        return _Directive(text, range(form.low, form.high + 1), is_all=True)
    if lower in form.values:
        value = form.values[lower]
        return _Directive(text, range(value, value + 1))
    span, slash, step_text = lower.partition("/")
    if slash and not _NUMBER.fullmatch(step_text):
        return _Directive(text, None)
    first, hyphen, second = span.partition("-")
    if slash and span == "*":
        start, end = form.low, form.high
    elif hyphen and first in form.values and second in form.values:
        start, end = form.values[first], form.values[second]
        if end < start and not slash:
            raise ValueSyntaxError(f"invalid interval {lower} (normalized to {start}-{end})")
    elif slash and span in form.values:
        start, end = form.values[span], form.high
    else:
        return _Directive(text, None)
    step = 1
    if slash:
        step = _STEPS.get(step_text, 0)
        if not 1 <= step <= form.high:
            raise ValueSyntaxError(f"invalid interval {lower}")
    return _Directive(text, range(start, end + 1, step))


def _workday(year: int, month: int, day: int, last: int) -> int:
    """Move a weekend day to the nearest workday of the same month."""
    day_of_week = weekday(days_from_civil(year, month, day))
    if day_of_week == 6:
        return day - 1 if day > 1 else day + 2
    if day_of_week == 0:
        return day + 1 if day < last else day - 2
    return day
