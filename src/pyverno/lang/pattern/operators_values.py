"""Values that texts of conditions stand for: durations, quantities, numbers. Parsed as Go does, never raising."""

from __future__ import annotations

import math

from pyverno.kube.json import JSON, is_number
from pyverno.kube.quantity import Quantity, try_quantity
from pyverno.kube.time.duration import try_duration
from pyverno.lazyregex import regex

__all__ = ["duration_of", "integer_of", "pair_durations", "quantity_of", "seconds_of"]

_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = regex(r"[+-]?[0-9]+")
_NANOSECONDS = 1_000_000_000
_INT64 = 2**63
_MAX_DIGITS = 400


def duration_of(text: str) -> int | None:
    """Return the nanoseconds of a Go duration, None for anything else."""
    return try_duration(text) if text[:1] in _NUMBER_START else None


def quantity_of(text: str) -> Quantity | None:
    """Return a Kubernetes quantity, None for anything else."""
    return try_quantity(text)  # a suffix alone is 0, as in apimachinery


def integer_of(text: str) -> int | None:
    """Return a base 10 integer of 64 bits, None for anything else."""
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def seconds_of(number: float) -> int | None:
    """Return a number of seconds in nanoseconds, the fraction cut; None when it is not finite."""
    return int(number) * _NANOSECONDS if isinstance(number, int) or math.isfinite(number) else None


def _duration_text(value: JSON) -> int | None:
    # "0" parses as a duration, but alone it does not make a comparison one of durations
    return duration_of(value) if isinstance(value, str) and value != "0" else None


def pair_durations(key: JSON, value: JSON) -> tuple[int, int] | None:
    """Return both sides in nanoseconds when they compare as durations: one is a duration, the other too or a number.

    >>> pair_durations("1m", 59)
    (60000000000, 59000000000)
    >>> pair_durations("1m", "59") is None
    True
    """
    key_duration, value_duration = _duration_text(key), _duration_text(value)
    if key_duration is None and value_duration is None:
        return None
    if key_duration is None and is_number(key):
        key_duration = seconds_of(key)
    if value_duration is None and is_number(value):
        value_duration = seconds_of(value)
    if key_duration is None or value_duration is None:
        return None
    return key_duration, value_duration
