"""Condition operators: KEY operator VALUE, as preconditions and deny conditions use them.

Each operator is compiled for one value and then tests keys; types that do not fit are false. This module
must never raise for any key or value, nor know where they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyverno.kube.json import JSON
from pyverno.lang.pattern.operators_equality import compile_equals, compile_not_equals
from pyverno.lang.pattern.operators_membership import (
    BOTH_SIDES,
    MEMBERSHIP,
    CompileSided,
    Sides,
    compile_in,
    compile_not_in,
)
from pyverno.lang.pattern.operators_order import DURATION_ORDER, ORDER, compile_duration_order, compile_order
from pyverno.value import dataclass

__all__ = ["BOTH_SIDES", "OPERATORS", "Check", "Operator", "Sides", "compile_operator", "is_negated", "operator"]

Check = Callable[[JSON], bool]
"""A condition whose value is fixed: returns whether a key satisfies it."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: its name, what it means, and how it is compiled for a value.

    `alternatives` are the names that Kyverno's warning offers instead of a deprecated one. `is_exact` operators hold
    only when their name is written exactly so; the others are found in any casing. Wildcards count only on the sides
    that hold patterns; a wildcard makes `is_negated` operators false, and the others true.
    """

    name: str
    summary: str
    compile: CompileSided
    alternatives: tuple[str, ...] = ()
    is_exact: bool = False
    is_negated: bool = False


def _table() -> dict[str, Operator]:
    operators = [
        Operator("Equal", "deprecated spelling of Equals", compile_equals),
        Operator("Equals", "the key equals the value; a text value is a wildcard pattern", compile_equals),
        Operator("NotEqual", "deprecated spelling of NotEquals", compile_not_equals, is_negated=True),
        Operator("NotEquals", "the key does not equal the value", compile_not_equals, is_negated=True),
        Operator("In", "every key is one of the values", compile_in, ("AllIn", "AnyIn")),
        Operator("NotIn", "some key is none of the values", compile_not_in, ("AllNotIn", "AnyNotIn"), is_negated=True),
    ]
    operators += (
        Operator(name, summary, compile_, is_negated="Not" in name) for name, (summary, compile_) in MEMBERSHIP.items()
    )
    operators += (Operator(name, text, compile_order(test), is_exact=True) for name, (text, test) in ORDER.items())
    operators += (
        Operator(name, text, compile_duration_order(test), is_exact=True)
        for name, (text, test) in DURATION_ORDER.items()
    )
    return {item.name: item for item in operators}


OPERATORS: Mapping[str, Operator] = MappingProxyType(_table())
"""Every operator by its name."""

_BY_FOLDED_NAME: Mapping[str, Operator] = MappingProxyType({name.lower(): item for name, item in OPERATORS.items()})


def _never(_key: JSON) -> bool:
    return False


def compile_operator(name: str, value: JSON, sides: Sides = BOTH_SIDES) -> Check | None:
    """Return the check of keys against a fixed value, or None when there is no such operator.

    `sides` states where texts may be patterns.

    >>> compile_operator("Equals", "nginx*")("nginx-1")
    True
    """
    found = _BY_FOLDED_NAME.get(name.lower())
    if found is None:
        return None
    if found.is_exact and found.name != name:
        return _never  # COMPAT: ordering operators are found in any casing but compare only in their own
    return found.compile(value, sides)


def is_negated(name: str) -> bool:
    """Return whether a wildcard makes the operator of a name false.

    >>> is_negated("AnyNotIn"), is_negated("AnyIn")
    (True, False)
    """
    found = _BY_FOLDED_NAME.get(name.lower())
    return found is not None and found.is_negated


def operator(name: str, sides: Sides = BOTH_SIDES) -> Callable[[JSON, JSON], bool] | None:
    """Return the operator as a function of key and value, or None for an unknown name.

    >>> operator("GreaterThan")("1h", 3599)
    True
    """
    found = _BY_FOLDED_NAME.get(name.lower())
    if found is None:
        return None
    if found.is_exact and found.name != name:
        return lambda _key, _value: False
    compile_ = found.compile
    return lambda key, value: compile_(value, sides)(key)
