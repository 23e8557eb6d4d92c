"""Equals and NotEquals. They must never treat a bool as a number."""

from __future__ import annotations

from collections.abc import Callable

from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON, equal, is_number
from pyverno.kube.wildcard import compile_wildcard, has_wildcard
from pyverno.lang.pattern.operators_membership import BOTH_SIDES, Sides
from pyverno.lang.pattern.operators_values import duration_of, integer_of, quantity_of, seconds_of

__all__ = ["compile_equals", "compile_not_equals", "is_mere_text"]

Check = Callable[[JSON], bool]

_SHORT = 256


def compile_equals(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    """Return the check that a key equals a value.

    >>> compile_equals("1024Mi")("1Gi"), compile_equals("abc")("a*"), compile_equals(None)(None)
    (True, False, False)
    """
    # Kyverno: pkg/engine/variables/operator, equal
    if isinstance(value, bool):
        return lambda key: key is value
    if isinstance(value, str):
        return _equals_text(value, None if sides.value_is_pattern else value.__eq__)
    if is_number(value):
        return _equals_number(value)
    if isinstance(value, dict | list):
        kind = dict if isinstance(value, dict) else list
        return lambda key: isinstance(key, kind) and equal(key, value)
    return lambda _key: False


def compile_not_equals(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    """Return the check that a key differs from a value; a null key satisfies nothing.

    >>> compile_not_equals("a")("b"), compile_not_equals("a")(1), compile_not_equals("a")(None)
    (True, True, False)
    """
    equals = compile_equals(value, sides)
    return lambda key: key is not None and not equals(key)


def is_mere_text(value: str) -> bool:
    """Return whether the texts that equal a value are that value alone.

    >>> is_mere_text("windows"), is_mere_text("win*"), is_mere_text("1Gi"), is_mere_text("1h"), is_mere_text("0")
    (True, False, False, False, False)
    """
    is_short = len(value) <= _SHORT
    return is_short and not has_wildcard(value) and duration_of(value) is None and quantity_of(value) is None


def _equals_number(value: float) -> Check:
    seconds = seconds_of(value)

    def check(key: JSON) -> bool:
        if isinstance(key, str):
            # a duration in the key equals a number of seconds; no other text equals a number
            return key != "0" and seconds is not None and duration_of(key) == seconds
        return is_number(key) and bool(key == value)

    return check


def _equals_text(value: str, matches: Callable[[str], bool] | None = None) -> Check:
    duration = duration_of(value) if value != "0" else None
    quantity = quantity_of(value)
    integer = integer_of(value)
    number = parse_float(value)
    matches = matches or compile_wildcard(value)
    is_plain = duration is None and quantity is None

    def equals(key: str) -> bool:
        if is_plain:
            # a quantity equals no text that is none; most keys differ, and are not parsed
            return matches(key) and quantity_of(key) is None
        if duration is not None and key != "0" and (key_duration := duration_of(key)) is not None:
            return key_duration == duration
        if (key_quantity := quantity_of(key)) is not None:
            return quantity is not None and key_quantity == quantity
        return matches(key)

    def check(key: JSON) -> bool:
        if isinstance(key, str):
            return equals(key)
        if isinstance(key, bool):
            return False
        if isinstance(key, int):
            return integer is not None and key == integer
        return isinstance(key, float) and number is not None and key == number

    return check
