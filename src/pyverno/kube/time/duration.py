"""Go's durations: whole nanoseconds in a signed 64-bit integer, with Go's grammar, texts and errors.

Forms that Go refuses (days, blanks between parts, underscores, digits other than 0-9) are errors.
"""

from __future__ import annotations

import math
from functools import lru_cache

from pyverno.errors import ValueSyntaxError
from pyverno.kube.names import MAX_NAME
from pyverno.lazyregex import regex

__all__ = [
    "HOUR",
    "MICROSECOND",
    "MILLISECOND",
    "MINUTE",
    "NANOSECOND",
    "SECOND",
    "duration_from_seconds",
    "duration_seconds",
    "format_duration",
    "parse_duration",
    "quote_time",
    "try_duration",
]

NANOSECOND = 1
MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # micro sign
    "\u03bcs": MICROSECOND,  # Greek mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART = regex(r"([0-9]*)(\.?)([0-9]*)([^0-9.]*)")
_PLAIN = regex(r"[ !#-\[\]-~]*+")
_LIMIT = 1 << 63
_STARTS = frozenset("0123456789+-.")


def parse_duration(text: str) -> int:
    """Read a Go duration; returns nanoseconds.

    Raises `ValueSyntaxError` with the text of Go's time package.

    >>> parse_duration("1h30m") == 90 * MINUTE
    True
    """
    found = _parse(text) if len(text) <= MAX_NAME else _read(text)
    if isinstance(found, str):
        raise ValueSyntaxError(found)
    return found


def try_duration(text: str) -> int | None:
    """Read a Go duration; None when the text is not one.

    >>> try_duration("1.5s"), try_duration("1d")
    (1500000000, None)
    """
    if not text or text[0] not in _STARTS:
        return None
    found = _parse(text) if len(text) <= MAX_NAME else _read(text)
    return None if isinstance(found, str) else found


def format_duration(nanoseconds: int) -> str:
    """Write a duration as Go's `Duration.String` does.

    >>> format_duration(90 * MINUTE), format_duration(-1_500_000), format_duration(0)
    ('1h30m0s', '-1.5ms', '0s')
    """
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    for unit, name in ((SECOND, ""), (MILLISECOND, "ms"), (MICROSECOND, "µs"), (NANOSECOND, "ns")):
        if rest >= unit and name:
            return f"{sign}{_decimal(rest, unit)}{name}"
        if rest >= unit:
            break
    minutes, rest = divmod(rest, MINUTE)
    text = f"{_decimal(rest, SECOND)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{minutes}m{text}"
        if hours:
            text = f"{hours}h{text}"
    return sign + text


def duration_seconds(nanoseconds: int) -> float:
    """Return a duration as floating point seconds, with the rounding of Go's `Duration.Seconds`.

    >>> duration_seconds(1_500_000_000)
    1.5
    """
    sign = -1 if nanoseconds < 0 else 1
    seconds, rest = divmod(abs(nanoseconds), SECOND)
    return sign * (float(seconds) + float(rest) / 1e9)


def duration_from_seconds(seconds: float) -> int:
    """Turn floating point seconds into nanoseconds, cut toward zero as Go's conversion does.

    Values beyond 64 bits, NaN and infinities become the smallest duration, as on Go's amd64.

    >>> duration_from_seconds(1.5)
    1500000000
    """
    scaled = seconds * 1e9
    if not math.isfinite(scaled) or not -float(_LIMIT) <= scaled < float(_LIMIT):
        return -_LIMIT
    return int(scaled)


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).zfill(len(str(unit)) - 1).rstrip('0')}"


def _read(text: str) -> int | str:  # one grammar, read from left to right
    """Return nanoseconds, or the text of the error."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    negative = text[:1] == "-"
    if rest == "0":
        return 0
    if not rest:
        return f"time: invalid duration {quote_time(text)}"
    total = 0
    position = 0
    while position < len(rest):
        found = _PART.match(rest, position)
        if found is None or not (found[1] or found[3]):
            return f"time: invalid duration {quote_time(text)}"
        whole, point, fraction, unit_text = found.groups()
        value = _leading_int(whole)
        if value is None:
            return f"time: invalid duration {quote_time(text)}"
        if not unit_text:
            return f"time: missing unit in duration {quote_time(text)}"
        unit = _UNITS.get(unit_text)
        if unit is None:
            return f"time: unknown unit {quote_time(unit_text)} in duration {quote_time(text)}"
        value *= unit
        if value > _LIMIT:
            return f"time: invalid duration {quote_time(text)}"
        if point and fraction:
            value += _fraction(fraction, unit)
        total += value
        if value > _LIMIT or total > _LIMIT:
            return f"time: invalid duration {quote_time(text)}"
        position = found.end()
    if negative:
        return -total
    return total if total < _LIMIT else f"time: invalid duration {quote_time(text)}"


_parse = lru_cache(maxsize=4096)(_read)  # of texts no longer than a name


def _leading_int(digits: str) -> int | None:
    """Return the number, 0 for no digits, None beyond 2**63 (Go's leadingInt)."""
    digits = digits.lstrip("0")
    if len(digits) > 19:
        return None
    value = int(digits) if digits else 0
    return value if value <= _LIMIT else None


def _fraction(digits: str, unit: int) -> int:
    """Go reads fraction digits until 63 bits are full, then multiplies in floating point."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (_LIMIT - 1) // 10:
            break
        following = value * 10 + ord(digit) - 48
        if following > _LIMIT:
            break
        value = following
        scale *= 10
    return int(float(value) * (float(unit) / scale))


def quote_time(text: str) -> str:
    r"""Quote as Go's time package does: quotes and backslashes escaped, other than printable ASCII as bytes.

    >>> print(quote_time('a"'))
    "a\""
    """
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    parts = ['"']
    for character in text:
        if character in '"\\':
            parts.append("\\" + character)
        elif " " <= character < "\x7f":
            parts.append(character)
        else:
            parts.extend(f"\\x{byte:02x}" for byte in character.encode("utf-8", "replace"))
    return "".join(parts) + '"'
