"""Times as text: RFC 3339 timestamps, Go durations and time zones, with nanoseconds.

This module must never read the clock.
"""

from __future__ import annotations

import datetime
import zoneinfo
from functools import lru_cache
from typing import Final

from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.time.duration import parse_duration as parse_go_duration
from pyverno.lang.cel.arithmetic import checked_duration, checked_timestamp
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.scalars import Duration, Timestamp
from pyverno.lazyregex import regex

__all__ = ["Civil", "civil", "duration_text", "parse_duration", "parse_timestamp", "timestamp_text"]

_NS: Final = 10**9
MAX_ZONE: Final = 64
MAX_OFFSET: Final = 6
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_RFC3339: Final = regex(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


class Civil:
    """A moment on the clock and calendar of a zone; `weekday` counts from Sunday = 0."""

    __slots__ = ("date", "ns", "second_of_day")

    def __init__(self, date: datetime.date, second_of_day: int, ns: int) -> None:
        self.date = date
        self.second_of_day = second_of_day
        self.ns = ns

    @property
    def weekday(self) -> int:
        """Day of the week, Sunday = 0."""
        return self.date.isoweekday() % 7


def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp of an RFC 3339 text; its zone offset is kept.

    >>> parse_timestamp("1970-01-01T00:00:01.5Z").ns
    1500000000
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise _not_a_timestamp(text)
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        ordinal = datetime.date(year, month, day).toordinal()
    except ValueError:
        raise _not_a_timestamp(text) from None
    if hour > 23 or minute > 59 or second > 59:
        raise _not_a_timestamp(text)
    fraction = int((match.group(7) or "").ljust(9, "0")[:9] or 0)
    offset = _offset(match.group(8))
    if offset is None:
        raise _not_a_timestamp(text)
    seconds = (ordinal - _EPOCH) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    return checked_timestamp(seconds * _NS + fraction, offset)


def _not_a_timestamp(text: str) -> EvaluationError:
    return OperandError("invalid RFC 3339 timestamp", f'invalid RFC 3339 timestamp "{text}"')


def _offset(text: str) -> int | None:
    if text == "Z":
        return 0
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    seconds = hours * 3_600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def timestamp_text(value: Timestamp) -> str:
    """Return a timestamp as Go's RFC3339Nano prints it, in the zone it was written in.

    >>> timestamp_text(Timestamp(1_500_000_000))
    '1970-01-01T00:00:01.5Z'
    """
    local = civil(value, value.offset)
    hours, rest = divmod(local.second_of_day, 3_600)
    minutes, seconds = divmod(rest, 60)
    fraction = f".{local.ns:09d}".rstrip("0") if local.ns else ""
    zone = "Z"
    if value.offset:
        sign = "-" if value.offset < 0 else "+"
        zone = f"{sign}{abs(value.offset) // 3_600:02d}:{abs(value.offset) // 60 % 60:02d}"
    return f"{local.date.isoformat()}T{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}{zone}"


def civil(value: Timestamp, offset: int) -> Civil:
    """Return the clock and calendar reading of a timestamp at a zone offset in seconds."""
    seconds, ns = divmod(value.ns, _NS)
    days, second_of_day = divmod(seconds + offset, 86_400)
    try:
        return Civil(datetime.date.fromordinal(_EPOCH + days), second_of_day, ns)
    except (ValueError, OverflowError):
        raise EvaluationError("timestamp overflow") from None


def zone_offset(value: Timestamp, zone: str) -> int:
    """Return the offset in seconds of a named zone or `±hh:mm` at a moment; raises EvaluationError for others."""
    if ":" in zone:
        return _fixed_offset(zone)
    if zone in ("", "UTC"):
        return 0
    if len(zone) > MAX_ZONE:
        raise _unknown(zone)
    found = _zone(zone)
    try:
        moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=value.ns // _NS)
        delta = moment.astimezone(found).utcoffset()
    except OverflowError:
        raise EvaluationError("timestamp overflow") from None
    return int(delta.total_seconds()) if delta is not None else 0


def _fixed_offset(zone: str) -> int:
    hours, _, minutes = zone.partition(":")
    digits = hours[1:] if hours[:1] in ("+", "-") else hours
    is_short = len(digits) <= MAX_OFFSET and len(minutes) <= MAX_OFFSET
    if not (is_short and digits.isascii() and digits.isdigit() and minutes.isascii() and minutes.isdigit()):
        raise _unknown(zone)
    seconds = int(digits) * 3_600 + int(minutes) * 60
    return -seconds if hours.startswith("-") else seconds


def _unknown(zone: str) -> EvaluationError:
    return OperandError("unknown time zone", f"unknown time zone {zone}")


# keeps names that there are, never another text
@lru_cache(maxsize=256)
def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise _unknown(name) from None


def parse_duration(text: str) -> Duration:
    """Return the duration of a Go duration text such as `1h30m`."""
    try:
        return checked_duration(parse_go_duration(text))
    except ValueSyntaxError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def duration_text(value: Duration) -> str:
    """Return a duration in seconds, as `string(duration)` does.

    >>> duration_text(Duration(90_500_000_000))
    '90.5s'
    """
    seconds, rest = divmod(abs(value.ns), _NS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if value.ns < 0 else ''}{seconds}{fraction}s"
