"""When a policy is due: its cron line, read in a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.cron import CronExpression, parse_cronexpr
from pyverno.kube.time.gotime import GoTime

__all__ = ["next_due", "read_time", "write_time"]

_SECOND: Final = 1_000_000_000
_MAX_SKIPPED: Final = 4_000
"""Due times of one schedule that a clock change can hide: an hour of seconds."""


def next_due(text: str, after: float, zone: tzinfo = UTC) -> float | None:
    """Return the first due time of a cron line after a time, both in seconds since 1970; None for never.

    When clocks go forward, times that do not exist are due when the hour is over. When they go back, a schedule runs
    in the first of the two hours. Raises ValueSyntaxError for a line that cannot be run.

    >>> from zoneinfo import ZoneInfo
    >>> write_time(next_due("0 4 * * *", read_time("2026-07-01T00:00:00Z"), ZoneInfo("Europe/Berlin")))
    '2026-07-01T02:00:00Z'
    """
    for instant in _instants(parse_cronexpr(text), after, zone):
        if instant > after:
            return instant
    return None


def _instants(schedule: CronExpression, after: float, zone: tzinfo) -> Iterator[float]:
    """Yield the due times whose wall clock time is after that of an instant."""
    shift = datetime.fromtimestamp(after, zone).utcoffset()
    wall = after + (shift.total_seconds() if shift else 0.0)
    for _ in range(_MAX_SKIPPED):
        found = schedule.next(GoTime(int(wall * _SECOND)))
        if found is None:
            return
        wall = found.nanoseconds / _SECOND
        shown = datetime.fromtimestamp(wall, UTC).replace(tzinfo=zone)
        for fold in (0, 1):
            yield shown.replace(fold=fold).timestamp()


def read_time(text: str) -> float | None:
    """Read a timestamp of an object as seconds since 1970; None where there is none.

    >>> read_time("1970-01-01T00:01:00Z"), read_time("")
    (60.0, None)
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        raise ValueSyntaxError(f"`{text}` is no time") from None


def write_time(seconds: float) -> str:
    """Write seconds since 1970 as a timestamp of an object.

    >>> write_time(60.9)
    '1970-01-01T00:01:00Z'
    """
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
