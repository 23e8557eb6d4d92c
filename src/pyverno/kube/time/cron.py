"""Cron lines: the standard form that robfig/cron v3 reads, with descriptors, `@every` and a time zone.

The form that runs cleanup policies is in `cronexpr`; the two accept different lines and a policy needs both.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol
from zoneinfo import ZoneInfo

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.civil import civil_from_days, days_from_civil, weekday
from pyverno.kube.time.cronexpr import CronExpression, parse_cronexpr
from pyverno.kube.time.duration import SECOND, parse_duration
from pyverno.kube.time.gotime import GoTime
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["CronExpression", "CronFieldError", "Schedule", "parse_cronexpr", "parse_standard"]


class CronFieldError(ValueSyntaxError):
    """One of the five fields of a cron line is wrong: `field` is its name."""

    def __init__(self, message: str, field: str) -> None:
        """Take the text of the parser, and the name of the field."""
        super().__init__(message)
        self.field = field


class Schedule(Protocol):
    """Something that knows when it is due next."""

    def next(self, after: GoTime) -> GoTime | None:
        """Return the first due time after an instant, None when there is none."""


@dataclass(frozen=True, slots=True)
class _Field:
    """Values that one field allows; `is_star` when it was written as `*` or `?`."""

    values: frozenset[int]
    is_star: bool = False


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: int
    high: int
    names: dict[str, int]


_MONTHS = {
    name: index + 1
    for index, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
}
_DAYS = {name: index for index, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_BOUNDS = (_Bounds(0, 59, {}), _Bounds(0, 23, {}), _Bounds(1, 31, {}), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
_FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_INTEGER = regex(r"[+-]?[0-9]+")
_YEARS_AHEAD = 5


@dataclass(frozen=True, slots=True)
class _Every:
    """`@every DURATION`, in whole seconds and at least one."""

    delay: int

    def next(self, after: GoTime) -> GoTime | None:
        """Return the time one delay later, on a whole second."""
        return after.plus(self.delay - after.fraction)


@dataclass(frozen=True, slots=True)
class _Calendar:
    """Five fields; the zone is None for the zone of the given time."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: ZoneInfo | None = None

    def next(self, after: GoTime) -> GoTime | None:
        """Return the first due time after an instant within five years, seen at the offset of that instant."""
        start = after.plus(SECOND - after.fraction)
        offset = self._offset(start)
        wall = start.nanoseconds // SECOND + offset
        first_day, second_of_day = divmod(wall, 86_400)
        last_year = civil_from_days(first_day)[0] + _YEARS_AHEAD
        for day in range(first_day, days_from_civil(last_year + 1, 1, 1)):
            if self._is_due_on(day):
                for seconds in self._times(second_of_day if day == first_day else 0):
                    found = self._instant(day * 86_400 + seconds, after, offset)
                    if found is not None:
                        return found
        return None

    def _is_due_on(self, day: int) -> bool:
        _, month, day_of_month = civil_from_days(day)
        if month not in self.month.values:
            return False
        by_day = day_of_month in self.day.values
        by_weekday = weekday(day) in self.weekday.values
        if self.day.is_star or self.weekday.is_star:
            return by_day and by_weekday
        return by_day or by_weekday

    def _times(self, earliest: int) -> list[int]:
        """Return the due seconds of a day from the earliest on."""
        return [
            seconds
            for hour in sorted(self.hour.values)
            if hour >= earliest // 3600
            for minute in sorted(self.minute.values)
            if (seconds := hour * 3600 + minute * 60) >= earliest
        ]

    def _offset(self, time: GoTime) -> int:
        if self.zone is None:
            return time.offset
        moment = datetime.fromtimestamp(time.nanoseconds // SECOND, UTC).astimezone(self.zone)
        shift = moment.utcoffset()
        return int(shift.total_seconds()) if shift else 0

    def _instant(self, wall: int, after: GoTime, offset: int) -> GoTime | None:
        """Turn wall clock seconds into an instant; None where the zone's clock skips them."""
        if self.zone is None:
            return GoTime((wall - offset) * SECOND, after.offset, after.zone)
        for guess in (offset, self._offset(GoTime((wall - offset) * SECOND))):
            found = GoTime((wall - guess) * SECOND, after.offset, after.zone)
            if self._offset(found) == guess and found > after:
                return found
        return None


def parse_standard(text: str) -> Schedule:
    """Read five fields, a descriptor or `@every DURATION`, after an optional `CRON_TZ=ZONE` or `TZ=ZONE`.

    Raises `ValueSyntaxError` with robfig's text, a `CronFieldError` for one of the fields.

    >>> from pyverno.kube.time.gotime import parse_rfc3339
    >>> str(parse_standard("30 4 * * 1").next(parse_rfc3339("2024-01-02T00:00:00Z")))
    '2024-01-08T04:30:00Z'
    """
    if not text:
        raise ValueSyntaxError("empty spec string")
    zone = None
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, blank, rest = text.partition(" ")
        if not blank:
            raise ValueSyntaxError(f"provided bad location {head.partition('=')[2]}: no fields follow")
        zone = _zone(head.partition("=")[2])
        text = rest.strip()
    if text.startswith("@every "):
        return _every(text)
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueSyntaxError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != 5:
        raise ValueSyntaxError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, day_of_week = map(_field, fields, _BOUNDS, _FIELDS)
    return _Calendar(minute, hour, day, month, day_of_week, zone)


def _zone(name: str) -> ZoneInfo | None:
    if name in ("", "UTC"):
        return ZoneInfo("UTC")
    if name == "Local":
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueSyntaxError(f"provided bad location {name}: unknown time zone {name}") from None


def _every(text: str) -> _Every:
    try:
        delay = parse_duration(text.removeprefix("@every "))
    except ValueSyntaxError as error:
        raise ValueSyntaxError(f"failed to parse duration {text}: {error.message}") from None
    delay = max(delay, SECOND)
    return _Every(delay - delay % SECOND)


def _field(text: str, bounds: _Bounds, name: str) -> _Field:
    try:
        parts = [_range(part, bounds) for part in text.split(",") if part]
    except ValueSyntaxError as error:
        raise CronFieldError(error.message, name) from None
    return _Field(frozenset().union(*(part.values for part in parts)), any(part.is_star for part in parts))


def _range(text: str, bounds: _Bounds) -> _Field:
    span, *steps = text.split("/")
    first, *rest = span.split("-")
    is_star = first in ("*", "?")
    if is_star:
        start, end = bounds.low, bounds.high
    else:
        start = _number(first, bounds.names)
        if len(rest) > 1:
            raise ValueSyntaxError(f"too many hyphens: {text}")
        end = _number(rest[0], bounds.names) if rest else start
    step = 1
    if len(steps) > 1:
        raise ValueSyntaxError(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0], {})
        if not rest:
            end = bounds.high
        is_star = is_star and step <= 1
    if start < bounds.low:
        raise ValueSyntaxError(f"beginning of range ({start}) below minimum ({bounds.low}): {text}")
    if end > bounds.high:
        raise ValueSyntaxError(f"end of range ({end}) above maximum ({bounds.high}): {text}")
    if start > end:
        raise ValueSyntaxError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueSyntaxError(f"step of range should be a positive number: {text}")
    return _Field(frozenset(range(start, end + 1, step)), is_star)


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    problem = ""
    if not _INTEGER.fullmatch(text):
        problem = "invalid syntax"
    elif len(text) > 40 or not -(2**63) <= int(text) < 2**63:
        problem = "value out of range"
    if problem:
        raise ValueSyntaxError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {problem}')
    number = int(text)
    if number < 0:
        raise ValueSyntaxError(f"negative number ({number}) not allowed: {text}")
    return number
