"""The values of the label `cleanup.kyverno.io/ttl`: when an object is to be deleted.

A lifetime counts from the creation time of the object.
"""

from __future__ import annotations

import re

from pyverno.errors import ValueSyntaxError
from pyverno.kube.time.duration import HOUR, MICROSECOND, MILLISECOND, MINUTE, NANOSECOND, SECOND, try_duration
from pyverno.kube.time.gotime import GoTime, parse_time
from pyverno.lazyregex import regex

__all__ = ["parse_ttl"]

_INT64 = 2**63
_FRAGMENT = regex(r"([0-9]+)\s*([a-zµμ]+)", re.IGNORECASE)
_UNITS: dict[str, int] = {
    name: size
    for names, size in (
        ("ns nano nanos nanosecond nanoseconds", NANOSECOND),
        ("us µs μs micro micros microsecond microseconds", MICROSECOND),
        ("ms milli millis millisecond milliseconds", MILLISECOND),
        ("s sec secs second seconds", SECOND),
        ("m min mins minute minutes", MINUTE),
        ("h hr hrs hour hours", HOUR),
        ("d day days", 24 * HOUR),
        ("w wk wks week weeks", 7 * 24 * HOUR),
    )
    for name in names.split()
}
_LAYOUTS = ("2006-01-02T150405Z", "2006-01-02")


def parse_ttl(text: str, created: GoTime) -> GoTime:
    """Return the time of deletion; raises `ValueSyntaxError` when no format fits.

    Tried in this order: Go duration, sum of fragments such as `3d12h`, `2006-01-02T150405Z`, `2006-01-02`; the first
    two count from the creation time.

    >>> str(parse_ttl("3d12h", GoTime(0)))
    '1970-01-04T12:00:00Z'
    """
    lifetime = try_duration(text)
    if lifetime is None:
        lifetime = _sum_of_fragments(text)
    if lifetime is not None:
        return created.plus(lifetime)
    for layout in _LAYOUTS:
        try:
            return parse_time(layout, text)
        except ValueSyntaxError as error:
            problem = error.copied()
    raise problem.copied()


def _sum_of_fragments(text: str) -> int | None:
    """Return nanoseconds; None when the text has no fragment with a known unit."""
    if len(text) > 4_000:
        return None
    parts = [int(number) * _UNITS[unit.lower()] for number, unit in _FRAGMENT.findall(text) if unit.lower() in _UNITS]
    total = sum(parts)
    return total if parts and total < _INT64 else None
