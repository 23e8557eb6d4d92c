"""GreaterThan, LessThan and their kin, and the deprecated Duration* operators. What does not compare is false."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON, is_number
from pyverno.kube.semver import try_version
from pyverno.lang.pattern.operators_membership import BOTH_SIDES, CompileSided, Sides
from pyverno.lang.pattern.operators_values import duration_of, pair_durations, quantity_of, seconds_of

__all__ = ["DURATION_ORDER", "ORDER", "compile_duration_order", "compile_order"]

Check = Callable[[JSON], bool]
Test = Callable[[Any, Any], bool]

ORDER: Mapping[str, tuple[str, Test]] = MappingProxyType(
    {
        "GreaterThanOrEquals": ("the key is greater than the value or equal", python.ge),
        "GreaterThan": ("the key is greater than the value", python.gt),
        "LessThanOrEquals": ("the key is less than the value or equal", python.le),
        "LessThan": ("the key is less than the value", python.lt),
    }
)
"""Ordering operators: what they mean, and the comparison they make."""

DURATION_ORDER: Mapping[str, tuple[str, Test]] = MappingProxyType(
    {f"Duration{name}": (f"as durations, {text}", test) for name, (text, test) in ORDER.items()}
)
"""The deprecated operators that read numbers as seconds."""


def compile_order(test: Test) -> CompileSided:
    """Return the compiler of an ordering operator.

    Numbers compare as numbers; texts as durations, quantities, numbers or versions `x.y.z`, in that order.

    >>> compile_order(python.gt)("1.9.0")("1.10.0"), compile_order(python.gt)("1.9")("1.10")
    (True, False)
    """
    # Kyverno: pkg/engine/variables/operator, numeric

    def compile_value(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
        if is_number(value):
            return lambda key: _against_number(key, value, test)
        if isinstance(value, str):
            return _against_text(value, test)
        return lambda _key: False

    return compile_value


def _against_number(key: JSON, value: float, test: Test) -> bool:
    if is_number(key):
        return test(key, value)
    if not isinstance(key, str):
        return False
    if (pair := pair_durations(key, value)) is not None:
        return test(*pair)
    number = parse_float(key)
    return number is not None and test(number, value)


def _against_text(value: str, test: Test) -> Check:
    quantity = quantity_of(value)
    number = parse_float(value)
    version = try_version(value)

    def against_number(key: float) -> bool:
        if (pair := pair_durations(key, value)) is not None:
            return test(*pair)
        return number is not None and test(key, number)

    def check(key: JSON) -> bool:
        if is_number(key):
            return against_number(key)
        if not isinstance(key, str):
            return False
        if (pair := pair_durations(key, value)) is not None:
            return test(*pair)
        if quantity is not None and (key_quantity := quantity_of(key)) is not None:
            return test(key_quantity, quantity)
        if (key_number := parse_float(key)) is not None:
            return against_number(key_number)
        return version is not None and (key_version := try_version(key)) is not None and test(key_version, version)

    return check


def compile_duration_order(test: Test) -> CompileSided:
    """Return the compiler of a deprecated Duration operator.

    >>> compile_duration_order(python.gt)(5)(5.9)
    False
    """

    def compile_value(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
        right = _nanoseconds(value)
        if right is None:
            return lambda _key: False
        return lambda key: (left := _nanoseconds(key)) is not None and test(left, right)

    return compile_value


def _nanoseconds(value: JSON) -> int | None:
    if isinstance(value, str):
        return duration_of(value)
    return seconds_of(value) if is_number(value) else None
