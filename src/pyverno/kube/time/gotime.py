"""Go's instants: exact nanoseconds, an offset and a zone name, read and written by Go layouts.

The process zone is UTC. Nanoseconds are kept, which Python's datetime would lose.
"""

from __future__ import annotations

from pyverno.kube.time.civil import civil_from_days, days_from_civil, weekday, year_day
from pyverno.kube.time.golayout import DAYS, MONTHS, chunks, read_fields
from pyverno.value import dataclass

__all__ = ["RFC3339", "RFC3339_NANO", "GoTime", "parse_rfc3339", "parse_time", "unix_time"]

RFC3339 = "2006-01-02T15:04:05Z07:00"
RFC3339_NANO = "2006-01-02T15:04:05.999999999Z07:00"

_SECOND = 1_000_000_000
_ZERO = -62_135_596_800 * _SECOND
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class GoTime:
    """One instant: `nanoseconds` since 1970 (UTC), seen at an `offset` in seconds east of UTC.

    Order and equality look at the instant only.

    >>> parse_rfc3339("2021-01-02T15:04:05-07:00").format("15:04 Mon")
    '15:04 Sat'
    """

    nanoseconds: int
    offset: int = 0
    zone: str = "UTC"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GoTime) and self.nanoseconds == other.nanoseconds

    def __lt__(self, other: GoTime) -> bool:
        return self.nanoseconds < other.nanoseconds

    def __le__(self, other: GoTime) -> bool:
        return self.nanoseconds <= other.nanoseconds

    def __gt__(self, other: GoTime) -> bool:
        return self.nanoseconds > other.nanoseconds

    def __ge__(self, other: GoTime) -> bool:
        return self.nanoseconds >= other.nanoseconds

    def __hash__(self) -> int:
        return hash(self.nanoseconds)

    def __str__(self) -> str:
        return self.format(RFC3339_NANO)

    @property
    def date(self) -> tuple[int, int, int]:
        """Year, month and day at the offset."""
        return civil_from_days(self._days())

    @property
    def clock(self) -> tuple[int, int, int]:
        """Hour, minute and second at the offset."""
        seconds = (self.nanoseconds // _SECOND + self.offset) % 86_400
        return seconds // 3600, seconds // 60 % 60, seconds % 60

    @property
    def weekday(self) -> int:
        """Day of the week at the offset, 0 for Sunday."""
        return weekday(self._days())

    @property
    def fraction(self) -> int:
        """Nanoseconds within the second."""
        return self.nanoseconds % _SECOND

    def plus(self, nanoseconds: int) -> GoTime:
        """Return the instant that is this many nanoseconds later."""
        return GoTime(self.nanoseconds + nanoseconds, self.offset, self.zone)

    def minus(self, other: GoTime) -> int:
        """Return the nanoseconds from another instant to this one, kept within 64 bits as Go does."""
        return max(-_INT64_MAX - 1, min(_INT64_MAX, self.nanoseconds - other.nanoseconds))

    def in_utc(self) -> GoTime:
        """Return the same instant seen in UTC."""
        return GoTime(self.nanoseconds)

    def truncate(self, unit: int) -> GoTime:
        """Cut to a multiple of `unit` nanoseconds since the year 1 (UTC); unchanged when the unit is not positive.

        >>> str(parse_rfc3339("2021-01-02T17:08:00Z").truncate(3600 * 10**9))
        '2021-01-02T17:00:00Z'
        """
        return self if unit <= 0 else self.plus(-((self.nanoseconds - _ZERO) % unit))

    def format(self, layout: str) -> str:
        """Write the instant by a Go layout.

        >>> GoTime(0).format("02 Jan 06 15:04 MST")
        '01 Jan 70 00:00 UTC'
        """
        return "".join(prefix + (_element(self, element) if element else "") for prefix, element in chunks(layout))

    def _days(self) -> int:
        return (self.nanoseconds // _SECOND + self.offset) // 86_400


def parse_time(layout: str, text: str) -> GoTime:
    """Read a time by a Go layout; raises `ValueSyntaxError` with Go's text.

    >>> str(parse_time("2006-01-02", "2021-12-02"))
    '2021-12-02T00:00:00Z'
    """
    fields = read_fields(layout, text)
    days = days_from_civil(fields.year, fields.month, fields.day)
    seconds = days * 86_400 + fields.hour * 3600 + fields.minute * 60 + fields.second
    if fields.is_utc:
        offset, zone = 0, "UTC"
    elif fields.offset is not None:
        is_local = not fields.offset and fields.zone in ("", "UTC")
        offset, zone = fields.offset, "UTC" if is_local else fields.zone
    elif fields.zone:
        # An abbreviation is not looked up. COMPAT: the hours of `GMT+3` are shown, but do not move the instant.
        zone = fields.zone
        seen = int(zone[3:]) * 3600 if zone.startswith("GMT") and len(zone) > 3 else 0
        return GoTime(seconds * _SECOND + fields.nanosecond, seen, zone)
    else:
        offset, zone = 0, "UTC"
    return GoTime((seconds - offset) * _SECOND + fields.nanosecond, offset, zone)


def parse_rfc3339(text: str) -> GoTime:
    """Read an RFC 3339 time, fraction optional; raises `ValueSyntaxError` with Go's text.

    >>> parse_rfc3339("1970-01-01T00:00:00.000000001Z").nanoseconds
    1
    """
    return parse_time(RFC3339, text)


def unix_time(seconds: int) -> GoTime:
    """Return the UTC instant that is this many seconds after 1970.

    >>> str(unix_time(1700000000))
    '2023-11-14T22:13:20Z'
    """
    return GoTime(seconds * _SECOND)


def _element(time: GoTime, element: str) -> str:  # one line per element of Go's layout language
    year, month, day = time.date
    hour, minute, second = time.clock
    match element:
        case "2006":
            return f"-{-year:04d}" if year < 0 else f"{year:04d}"
        case "06":
            return f"{max(year, 0) % 100:02d}"
        case "January":
            return MONTHS[month - 1]
        case "Jan":
            return MONTHS[month - 1][:3]
        case "01":
            return f"{month:02d}"
        case "1":
            return str(month)
        case "Monday":
            return DAYS[time.weekday]
        case "Mon":
            return DAYS[time.weekday][:3]
        case "02":
            return f"{day:02d}"
        case "_2":
            return f"{day:2d}"
        case "2":
            return str(day)
        case "002":
            return f"{year_day(year, month, day):03d}"
        case "__2":
            return f"{year_day(year, month, day):3d}"
        case "15":
            return f"{hour:02d}"
        case "03":
            return f"{hour % 12 or 12:02d}"
        case "3":
            return str(hour % 12 or 12)
        case "04":
            return f"{minute:02d}"
        case "4":
            return str(minute)
        case "05":
            return f"{second:02d}"
        case "5":
            return str(second)
        case "PM":
            return "PM" if hour >= 12 else "AM"
        case "pm":
            return "pm" if hour >= 12 else "am"
        case "MST":
            return time.zone or _offset_text(time.offset, "-0700", is_short_zone=True)
    if element[0] in ".,":
        return _fraction_text(time.fraction, element)
    return _offset_text(time.offset, element)


def _fraction_text(nanoseconds: int, element: str) -> str:
    digits = f"{nanoseconds:09d}"[: len(element) - 1].ljust(len(element) - 1, "0")
    if element[1] == "9":
        digits = digits.rstrip("0")
        return element[0] + digits if digits else ""
    return element[0] + digits


def _offset_text(offset: int, element: str, *, is_short_zone: bool = False) -> str:
    if element[0] == "Z" and not offset:
        return "Z"
    sign = "-" if offset < 0 and (abs(offset) >= 60 or is_short_zone) else "+"
    minutes = abs(offset) // 60
    colon = ":" if ":" in element else ""
    text = f"{sign}{minutes // 60:02d}"
    if len(element) > 3:
        text += f"{colon}{minutes % 60:02d}"
    if len(element) > 6:
        text += f"{colon}{abs(offset) % 60:02d}"
    return text
