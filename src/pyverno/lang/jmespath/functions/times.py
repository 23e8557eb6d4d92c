"""Functions on times (RFC 3339 texts) and durations (Go texts).

The clock is that of the runtime's host: this module must never read another one.
"""

from __future__ import annotations

import re
from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSON
from pyverno.kube.time.duration import format_duration, parse_duration
from pyverno.kube.time.gotime import RFC3339, GoTime, parse_time, unix_time
from pyverno.lang.jmespath.cost import FLAT, Cost
from pyverno.lang.jmespath.function import BOOL, STRING, function, unreadable
from pyverno.lang.runtime import Runtime
from pyverno.lazyregex import regex

__all__ = ["FUNCTIONS"]

_INTEGER: Final = regex(r"[+-]?[0-9]{1,20}")
_INT64: Final = 2**63


@function(
    "time_since",
    STRING,
    STRING,
    STRING,
    returns=STRING,
    cost=Cost(per_step=1, most=1024),
    note="gives the time between two points in a layout; an empty end is now",
)
def time_since(runtime: Runtime, layout: str, start: str, end: str) -> JSON:
    """Return the duration from start to end; an empty layout is RFC 3339, an empty end is now.

    >>> time_since('2006-01-02', '2021-01-02', '2021-01-03')
    "24h0m0s"
    """
    begin = _time("time_since", 2, start, layout or RFC3339)
    stop = _time("time_since", 3, end, layout or RFC3339) if end else GoTime(runtime.host.now())
    return format_duration(stop.minus(begin))


@function("time_now", returns=STRING, cost=FLAT, note="gives the current time in RFC 3339")
def time_now(runtime: Runtime) -> JSON:
    """Return the current time in UTC, in whole seconds.

    >>> time_now() == time_now_utc()
    true
    """
    return _show(GoTime(runtime.host.now()))


@function("time_now_utc", returns=STRING, cost=FLAT, note="gives the current time in UTC, in RFC 3339")
def time_now_utc(runtime: Runtime) -> JSON:
    """Return the current time in UTC, in whole seconds.

    >>> length(time_now_utc())
    20
    """
    return _show(GoTime(runtime.host.now()))


@function("time_to_cron", STRING, returns=STRING, cost=Cost(per_step=1, most=1024), note="writes a time as a cron line")
def time_to_cron(_runtime: Runtime, time: str) -> JSON:
    """Write a time as minute, hour, day, month and weekday, in its own offset.

    >>> time_to_cron('2022-04-11T03:14:05-07:00')
    "14 3 11 4 1"
    """
    moment = _time("time_to_cron", 1, time)
    _, month, day = moment.date
    hour, minute, _ = moment.clock
    return f"{minute} {hour} {day} {month} {moment.weekday}"


@function(
    "time_add", STRING, STRING, returns=STRING, cost=Cost(per_step=1, most=1024), note="adds a duration to a time"
)
def time_add(_runtime: Runtime, time: str, duration: str) -> JSON:
    """Add a duration, which may be negative; the offset is kept.

    >>> time_add('2021-01-02T15:04:05-07:00', '3h')
    "2021-01-02T18:04:05-07:00"
    >>> time_add('2021-01-02T15:04:05Z', '1d')
    error: JMESPath function 'time_add': argument #2 (a string of 2 characters) is not a duration
    """
    moment = _time("time_add", 1, time)
    return _show(moment.plus(_duration("time_add", duration)))


@function(
    "time_parse",
    STRING,
    STRING,
    returns=STRING,
    cost=Cost(per_step=1, most=1024),
    note="reads a time in a layout and writes it in RFC 3339",
)
def time_parse(_runtime: Runtime, layout: str, time: str) -> JSON:
    """Read a time in a Go layout; a layout that is an integer means seconds since 1970.

    >>> time_parse('2006-01-02', '2021-12-02')
    "2021-12-02T00:00:00Z"
    >>> time_parse('1', '1700000000')
    "2023-11-14T22:13:20Z"
    """
    if _integer(layout) is None:
        return _show(_time("time_parse", 2, time, layout))
    seconds = _integer(time)
    if seconds is None:
        reason = "value out of range" if re.fullmatch("[+-]?[0-9]+", time) else "invalid syntax"
        detailed = f'strconv.ParseInt: parsing "{time}": {reason}'
        raise unreadable("time_parse", 2, time, "a 64-bit integer", detailed)
    return _show(unix_time(seconds))


@function("time_utc", STRING, returns=STRING, cost=Cost(per_step=1, most=1024), note="converts a time to UTC")
def time_utc(_runtime: Runtime, time: str) -> JSON:
    """Convert a time to UTC.

    >>> time_utc('2021-01-02T15:04:05-07:00')
    "2021-01-02T22:04:05Z"
    """
    return _show(_time("time_utc", 1, time).in_utc())


@function(
    "time_diff",
    STRING,
    STRING,
    returns=STRING,
    cost=Cost(per_step=1, most=1024),
    note="gives the duration from one time to another",
)
def time_diff(_runtime: Runtime, start: str, end: str) -> JSON:
    """Return the duration from start to end; negative when the end is earlier.

    >>> time_diff('2021-01-02T15:04:05Z', '2021-01-02T15:04:04.5Z')
    "-500ms"
    """
    begin, stop = _time("time_diff", 1, start), _time("time_diff", 2, end)
    return format_duration(stop.minus(begin))


@function(
    "time_before",
    STRING,
    STRING,
    returns=BOOL,
    cost=Cost(per_step=1, most=1024),
    note="checks whether a time is before another",
)
def time_before(_runtime: Runtime, left: str, right: str) -> JSON:
    """Return whether the first time is before the second.

    >>> time_before('2021-01-02T15:04:05-07:00', '2021-01-02T15:04:05Z')
    false
    """
    first, second = _time("time_before", 1, left), _time("time_before", 2, right)
    return first < second


@function(
    "time_after",
    STRING,
    STRING,
    returns=BOOL,
    cost=Cost(per_step=1, most=1024),
    note="checks whether a time is after another",
)
def time_after(_runtime: Runtime, left: str, right: str) -> JSON:
    """Return whether the first time is after the second.

    >>> time_after('2021-01-02T15:04:05-07:00', '2021-01-02T15:04:05Z')
    true
    """
    first, second = _time("time_after", 1, left), _time("time_after", 2, right)
    return first > second


@function(
    "time_between",
    STRING,
    STRING,
    STRING,
    returns=BOOL,
    cost=Cost(per_step=1, most=1024),
    note="checks whether a time is between two others",
)
def time_between(_runtime: Runtime, time: str, start: str, end: str) -> JSON:
    """Return whether a time is after a start and before an end, equal to neither.

    >>> time_between('2021-01-02T00:00:00Z', '2021-01-01T00:00:00Z', '2021-01-03T00:00:00Z')
    true
    """
    moment, begin, stop = (_time("time_between", number, text) for number, text in enumerate((time, start, end), 1))
    return begin < moment < stop


@function(
    "time_truncate",
    STRING,
    STRING,
    returns=STRING,
    cost=Cost(per_step=1, most=1024),
    note="rounds a time down to a multiple of a duration",
)
def time_truncate(_runtime: Runtime, time: str, duration: str) -> JSON:
    """Round down to a multiple of a duration since the start of year 1 in UTC; a duration of 0 or less does nothing.

    >>> time_truncate('2021-01-02T17:08:00Z', '1h')
    "2021-01-02T17:00:00Z"
    """
    moment, step = _time("time_truncate", 1, time), _duration("time_truncate", duration)
    return _show(moment.truncate(step))


def _time(name: str, number: int, text: str, layout: str = RFC3339) -> GoTime:
    try:
        return parse_time(layout, text)
    except ValueSyntaxError as error:
        raise unreadable(name, number, text, "a time in that layout", error.message) from None


def _duration(name: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueSyntaxError as error:
        raise unreadable(name, 2, text, "a duration", error.message) from None


def _show(moment: GoTime) -> str:
    return moment.format(RFC3339)


def _integer(text: str) -> int | None:
    """Read a 64-bit integer as Go's ParseInt does; None when it is not one."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


FUNCTIONS: Final = (
    time_since,
    time_now,
    time_now_utc,
    time_to_cron,
    time_add,
    time_parse,
    time_utc,
    time_diff,
    time_before,
    time_after,
    time_between,
    time_truncate,
)
