"""The sets library: lists as sets.

This module must never depend on the order of elements.
"""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.declarations import CallCost, Library, function
from pyverno.lang.cel.libraries.costs import value_size
from pyverno.lang.cel.values import Value, equals

__all__ = ["SETS"]


def _pairs(factor: int) -> CallCost:
    return lambda args, _result: 1 + value_size(args[0]) * value_size(args[1]) * factor


def _within(items: Value, container: Value) -> bool:
    texts = {item for item in container if type(item) is str}
    return all(
        item in texts if type(item) is str else any(equals(item, other) for other in container) for item in items
    )


@function("sets.contains", "(list(T), list(T)) -> bool", cost=_pairs(1))
def contains(items: Value, wanted: Value) -> bool:
    """Whether the first list has every element of the second.

    CEL: sets.contains([1, 2, 3], [2, 3]) ⇒ true
    """
    return _within(wanted, items)


@function("sets.equivalent", "(list(T), list(T)) -> bool", cost=_pairs(2))
def equivalent(one: Value, two: Value) -> bool:
    """Whether two lists have the same elements, however often.

    CEL: sets.equivalent([1, 2], [2, 1, 1]) ⇒ true
    """
    return _within(one, two) and _within(two, one)


@function("sets.intersects", "(list(T), list(T)) -> bool", cost=_pairs(1))
def intersects(one: Value, two: Value) -> bool:
    """Whether two lists have an element in common.

    CEL: sets.intersects([1], [2, 1]) ⇒ true
    """
    return any(_within([item], two) for item in one)


SETS: Final = Library("sets", (contains, equivalent, intersects), introduced="1.29", doc="Lists as sets.")
