"""The lists library: slices, flattening, sorting, ranges.

Versions are cel-go's: `flatten` came with 1; sorting, ranges, `reverse` and `distinct` with 2; their costs with 3.
Kubernetes has version 3 since 1.34.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import CallCost, Library, function
from pyverno.lang.cel.faults import OperandError
from pyverno.lang.cel.libraries.costs import value_size
from pyverno.lang.cel.runtime.evaluation import ITEM_BYTES, Evaluation
from pyverno.lang.cel.syntax.macros import SORT_BY_MACROS
from pyverno.lang.cel.values import Value, compare, type_name
from pyverno.lang.cel.work import instant, reading, sorting

__all__ = ["COMPARABLE", "LISTS"]

COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_CREATE: Final = 11
_TRAVERSAL: Final = 0.1
OPENED_PER_STEP: Final = 8


def _creation_cost(_args: tuple[Value, ...], result: Value) -> int:
    return value_size(result) + _CREATE


def _flatten_cost(args: tuple[Value, ...], _result: Value) -> int:
    depth = args[1] if len(args) == 2 else 1
    return int(value_size(args[0]) * depth) + _CREATE


def _comparison_cost(position: int) -> CallCost:
    def cost(args: tuple[Value, ...], _result: Value) -> int:
        items = args[position]
        factor = 2.0
        if items and isinstance(items[0], (str, bytes)):
            factor += _TRAVERSAL
        return int(len(items) ** 2 * factor) + _CREATE

    return cost


@function("slice", "list(T).(int, int) -> list(T)", cost=_creation_cost, work=reading())
def slice_(items: Value, start: int, end: int) -> Value:
    """The elements from a start to before an end.

    CEL: [1, 2, 3, 4].slice(1, 3) ⇒ [2, 3]
    """
    if start < 0 or end < 0:
        raise _unsliced(start, end, "negative indexes not supported")
    if start > end:
        raise _unsliced(start, end, "start index must be less than or equal to end index")
    if len(items) < end:
        raise _unsliced(start, end, f"list is length {len(items)}")
    return items[start:end]


def _unsliced(start: int, end: int, problem: str) -> EvaluationError:
    return OperandError(f"cannot slice: {problem}", f"cannot slice({start}, {end}), {problem}")


@function(
    "flatten",
    "list(list(T)).() -> list(T)",
    "list(dyn).(int) -> list(dyn)",
    cost=_flatten_cost,
    since=(1,),
    in_context=True,
    work=instant,
)
def flatten(evaluation: Evaluation, items: Value, depth: int = 1) -> list[Value]:
    """The elements with inner lists opened, one level or as many as given.

    CEL: [[1], [2, 3]].flatten() ⇒ [1, 2, 3]
    """
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    result: list[Value] = list(items)
    for _ in range(depth):
        if not any(isinstance(item, (list, tuple)) for item in result):
            break
        opened: list[Value] = []
        evaluation.afford("flatten", len(result) // OPENED_PER_STEP)
        evaluation.produce(ITEM_BYTES * sum(len(item) if isinstance(item, (list, tuple)) else 1 for item in result))
        for item in result:
            if isinstance(item, (list, tuple)):
                opened.extend(item)
            else:
                opened.append(item)
        result = opened
    return result


def _sorted_by(items: Value, keys: Value) -> Value:
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    kind = type_name(keys[0])
    if any(type_name(key) != kind for key in keys):
        raise EvaluationError("list elements must have the same type")
    try:
        compare(keys[0], keys[0])
    except EvaluationError:
        raise EvaluationError("list elements must be comparable") from None
    order = sorted(range(len(keys)), key=cmp_to_key(lambda one, two: _order(keys[one], keys[two])))
    return [items[position] for position in order]


def _order(one: Value, two: Value) -> int:
    result = compare(one, two)
    return 0 if result == 2 else result


@function(
    "sort",
    *(f"list({kind}).() -> list({kind})" for kind in COMPARABLE),
    cost=_comparison_cost(0),
    since=(2,),
    work=sorting(),
)
def sort(items: Value) -> Value:
    """The elements in ascending order.

    CEL: [3, 1, 2].sort() ⇒ [1, 2, 3]
    """
    return _sorted_by(items, items)


@function(
    "@sortByAssociatedKeys",
    *(f"list(T).(list({kind})) -> list(T)" for kind in COMPARABLE),
    cost=_comparison_cost(1),
    since=(2,),
    work=sorting(1),
)
def sort_by_associated_keys(items: Value, keys: Value) -> Value:
    """The elements in the ascending order of their keys; what `sortBy` stands for.

    CEL: ['bb', 'a'].sortBy(x, x.size()) ⇒ ['a', 'bb']
    """
    return _sorted_by(items, keys)


@function("lists.range", "(int) -> list(int)", cost=_creation_cost, in_context=True, since=(2,), work=instant)
def range_(evaluation: Evaluation, count: int) -> list[int]:
    """The integers from 0 to before a count.

    CEL: lists.range(3) ⇒ [0, 1, 2]
    """
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    evaluation.check_room(count)
    evaluation.afford("lists.range", count // 16)
    evaluation.produce(count * 4 * ITEM_BYTES)
    return list(range(count))


@function("reverse", "list(T).() -> list(T)", cost=_creation_cost, since=(2,), work=reading())
def reverse(items: Value) -> Value:
    """The elements backwards.

    CEL: [1, 2].reverse() ⇒ [2, 1]
    """
    return items[::-1]


@function("distinct", "list(T).() -> list(T)", cost=_comparison_cost(0), in_context=True, since=(2,), work=instant)
def distinct(evaluation: Evaluation, items: Value) -> Value:
    """The elements without repetitions.

    CEL: [1, 2, 1].distinct() ⇒ [1, 2]
    """
    evaluation.check_room(2 * len(items) ** 2)
    others_count = sum(type(item) is not str for item in items)
    evaluation.afford("distinct", len(items) // 8 + others_count**2 // 4)
    texts: set[str] = set()
    kept: list[Value] = []
    others: list[Value] = []
    for item in items:
        if type(item) is str:
            if item not in texts:
                texts.add(item)
                kept.append(item)
            continue
        if not any(evaluation.are_equal(item, other) for other in others):
            others.append(item)
            kept.append(item)
    return kept


LISTS: Final = Library(
    "lists",
    (slice_, flatten, sort, sort_by_associated_keys, range_, reverse, distinct),
    macros=SORT_BY_MACROS,
    introduced="1.34",
    doc="Slices, flattening, sorting and ranges of lists.",
)
