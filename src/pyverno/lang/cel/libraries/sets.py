"""The sets library: lists as sets."""

from __future__ import annotations

from typing import Final

from pyverno.lang.cel.declarations import CallCost, Library, function
from pyverno.lang.cel.libraries.costs import value_size
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import pairing

__all__ = ["SETS"]


def _pairs(factor: int) -> CallCost:
    return lambda args, _result: 1 + value_size(args[0]) * value_size(args[1]) * factor


def _within(evaluation: Evaluation, items: Value, container: Value) -> bool:
    texts = {item for item in container if type(item) is str}
    others = [item for item in container if type(item) is not str]
    equals = evaluation.are_equal
    return all(item in texts if type(item) is str else any(equals(item, other) for other in others) for item in items)


@function("sets.contains", "(list(T), list(T)) -> bool", cost=_pairs(1), metered=True, work=pairing())
def contains(evaluation: Evaluation, items: Value, wanted: Value) -> bool:
    """Whether the first list has every element of the second.

    CEL: sets.contains([1, 2, 3], [2, 3]) ⇒ true
    """
    return _within(evaluation, wanted, items)


@function("sets.equivalent", "(list(T), list(T)) -> bool", cost=_pairs(2), metered=True, work=pairing())
def equivalent(evaluation: Evaluation, one: Value, two: Value) -> bool:
    """Whether two lists have the same elements, however often.

    CEL: sets.equivalent([1, 2], [2, 1, 1]) ⇒ true
    """
    return _within(evaluation, one, two) and _within(evaluation, two, one)


@function("sets.intersects", "(list(T), list(T)) -> bool", cost=_pairs(1), metered=True, work=pairing())
def intersects(evaluation: Evaluation, one: Value, two: Value) -> bool:
    """Whether two lists have an element in common.

    CEL: sets.intersects([1], [2, 1]) ⇒ true
    """
    texts = {item for item in two if type(item) is str}
    others = [item for item in two if type(item) is not str]
    equals = evaluation.are_equal
    return any(item in texts if type(item) is str else any(equals(item, other) for other in others) for item in one)


SETS: Final = Library("sets", (contains, equivalent, intersects), introduced="1.29", doc="Lists as sets.")
