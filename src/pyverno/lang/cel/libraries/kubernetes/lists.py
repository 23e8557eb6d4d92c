"""Kubernetes' libraries: quantities, versions, URLs, regular expressions, lists, JSON patch keys.

IP addresses are in `addresses`, formats in `formats`, the authorizer in `authorizer`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.arithmetic import add
from pyverno.lang.cel.declarations import Declaration, Library, function
from pyverno.lang.cel.libraries.costs import by_element
from pyverno.lang.cel.libraries.lists import COMPARABLE
from pyverno.lang.cel.runtime.evaluation import Evaluation
from pyverno.lang.cel.scalars import Duration, Uint
from pyverno.lang.cel.values import Value, compare, type_name
from pyverno.lang.cel.work import comparing, walking

__all__ = ["LIST_AGGREGATES"]

# quantities


# versions


# URLs


# regular expressions


# lists


@function("isSorted", *(f"list({kind}).() -> bool" for kind in COMPARABLE), cost=by_element, work=walking())
def is_sorted(items: Value) -> bool:
    """Whether no element is greater than the next one.

    CEL: [1, 2, 2].isSorted() ⇒ true
    """
    if items:
        _check_order(items[0], "isSorted")
    return all(compare(one, two) != 1 for one, two in pairwise(items))


def _check_order(item: Value, name: str) -> None:
    """Raise EvaluationError for an element that has no order, also when it is the only one."""
    if item is None or isinstance(item, (dict, list, tuple)):
        raise EvaluationError(f"no such overload: {name}(list)")


_SUMMED: Final = frozenset({"int", "uint", "double", Duration.cel_type})


def _sum(kind: str, zero: Value) -> Declaration:
    def total(items: Value) -> Value:
        """The sum of the elements, 0 for an empty list.

        CEL: [1, 2, 3].sum() ⇒ 6
        """
        result = zero if not items or type_name(items[0]) not in _SUMMED else type(items[0])(0)
        for item in items:
            result = add(result, item)
        return result

    return function("sum", f"list({kind}).() -> {kind}", cost=by_element, work=walking())(total)


def _extreme(items: Value, wanted: int, name: str) -> Value:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    _check_order(best, name)
    for item in items[1:]:
        if compare(best, item) == wanted:
            best = item
    return best


@function("min", *(f"list({kind}).() -> {kind}" for kind in COMPARABLE), cost=by_element, work=walking())
def least(items: Value) -> Value:
    """The least element; an error for an empty list.

    CEL: [2, 1, 3].min() ⇒ 1
    """
    return _extreme(items, 1, "min")


@function("max", *(f"list({kind}).() -> {kind}" for kind in COMPARABLE), cost=by_element, work=walking())
def greatest(items: Value) -> Value:
    """The greatest element; an error for an empty list.

    CEL: [2, 1, 3].max() ⇒ 3
    """
    return _extreme(items, -1, "max")


@function("indexOf", "list(A).(A) -> int", cost=by_element, metered=True, work=comparing())
def index_of(evaluation: Evaluation, items: Value, wanted: Value) -> int:
    """The index of the first equal element, -1 when there is none.

    CEL: ['a', 'b'].indexOf('b') ⇒ 1
    """
    return next((position for position, item in enumerate(items) if evaluation.are_equal(item, wanted)), -1)


@function("lastIndexOf", "list(A).(A) -> int", cost=by_element, metered=True, work=comparing())
def last_index_of(evaluation: Evaluation, items: Value, wanted: Value) -> int:
    """The index of the last equal element, -1 when there is none.

    CEL: [1, 2, 1].lastIndexOf(1) ⇒ 2
    """
    found = (place for place in reversed(range(len(items))) if evaluation.are_equal(items[place], wanted))
    return next(found, -1)


@function("includes", "dyn.(dyn) -> bool", cost=by_element, since=(1,), metered=True, work=comparing())
def includes(evaluation: Evaluation, container: Value, wanted: Value) -> bool:
    """Whether a list has an element, or a single value equals another.

    CEL: [1, 2].includes(2) ⇒ true
    """
    if isinstance(container, (list, tuple)):
        return any(evaluation.are_equal(item, wanted) for item in container)
    return evaluation.are_equal(container, wanted)


LIST_AGGREGATES: Final = Library(
    "kubernetes.lists",
    (
        is_sorted, _sum("int", 0), _sum("uint", Uint(0)), _sum("double", 0.0), _sum("duration", Duration(0)),
        least, greatest, index_of, last_index_of, includes,
    ),
    introduced="1.0",
    doc="Sums, extremes and positions in lists.",
)  # fmt: skip


# JSON patch
