"""JMESPath's own functions that order: max, min, sort and their forms by a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON, is_number
from pyverno.lang.jmespath.cost import ITEM, Cost, charge_texts
from pyverno.lang.jmespath.function import (
    ANY,
    ARRAY,
    ARRAY_OF_NUMBERS,
    ARRAY_OF_STRINGS,
    EXPREF,
    function,
)
from pyverno.lang.jmespath.values import ExpRef
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS"]


@function(
    "max",
    (ARRAY_OF_NUMBERS, ARRAY_OF_STRINGS),
    returns=ANY,
    cost=Cost(per_step=2 * ITEM),
    note="finds the largest number or text",
    standard=True,
)
def largest(runtime: Runtime, items: list[JSON]) -> JSON:
    """Find the largest of a list of numbers or of texts; null when it is empty.

    >>> max(`[1, 3, 2]`)
    3
    """
    _charge_keys(items, runtime)
    return max(items, default=None)


@function(
    "max_by",
    ARRAY,
    EXPREF,
    returns=ANY,
    cost=Cost(per_step=ITEM),
    note="finds the item with the largest key",
    standard=True,
)
def largest_by(runtime: Runtime, items: list[JSON], expression: ExpRef) -> JSON:
    """Find the first item whose key is the largest; null when the list is empty.

    >>> max_by(`[{"a": 1}, {"a": 2}]`, &a)
    {"a": 2}
    """
    return _best(runtime, items, expression, max)


@function(
    "min",
    (ARRAY_OF_NUMBERS, ARRAY_OF_STRINGS),
    returns=ANY,
    cost=Cost(per_step=2 * ITEM),
    note="finds the smallest number or text",
    standard=True,
)
def smallest(runtime: Runtime, items: list[JSON]) -> JSON:
    """Find the smallest of a list of numbers or of texts; null when it is empty.

    >>> min(['b', 'a'])
    "a"
    """
    _charge_keys(items, runtime)
    return min(items, default=None)


@function(
    "min_by",
    ARRAY,
    EXPREF,
    returns=ANY,
    cost=Cost(per_step=ITEM),
    note="finds the item with the smallest key",
    standard=True,
)
def smallest_by(runtime: Runtime, items: list[JSON], expression: ExpRef) -> JSON:
    """Find the first item whose key is the smallest; null when the list is empty.

    >>> min_by(`[{"a": 1}, {"a": 2}]`, &a)
    {"a": 1}
    """
    return _best(runtime, items, expression, min)


@function(
    "sort",
    (ARRAY_OF_STRINGS, ARRAY_OF_NUMBERS),
    returns=ARRAY,
    cost=Cost(per_step=2 * ITEM, copies=True),
    note="sorts numbers or texts",
    standard=True,
)
def sort(runtime: Runtime, items: list[JSON]) -> JSON:
    """Sort a list of numbers, or of texts by their bytes.

    >>> sort(['b', 'a', 'B'])
    ["B", "a", "b"]
    """
    _charge_keys(items, runtime)
    return sorted(items)


@function("sort_by", ARRAY, EXPREF, returns=ARRAY, cost=Cost(per_step=ITEM), note="sorts items by a key", standard=True)
def sort_by(runtime: Runtime, items: list[JSON], expression: ExpRef) -> JSON:
    """Sort items by a key; all keys must be numbers or all texts. Items with equal keys keep their order.

    >>> sort_by(`[{"a": 2}, {"a": 1}]`, &a)[].a
    [1, 2]
    """
    if len(items) < 2:
        return items
    is_same_type = _key_type(expression(items[0]))
    keys = []
    for item in items:
        try:
            key = expression(item)
        except EvaluationError as error:
            detailed = f"error in sort_by comparison: {error.detailed}"
            raise EvaluationError(f"error in sort_by comparison: {error.message}", detailed=detailed) from error
        if not is_same_type(key):
            raise EvaluationError("error in sort_by comparison")
        keys.append(key)
    _charge_keys(keys, runtime)
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[index] for index in order]


def _key_type(key: JSON) -> Callable[[JSON], bool]:
    if is_number(key):
        return is_number
    if isinstance(key, str):
        return lambda value: isinstance(value, str)
    raise EvaluationError("invalid type, must be number of string")


def _best(runtime: Runtime, items: list[JSON], expression: ExpRef, choose: Callable[..., int]) -> JSON:
    if len(items) < 2:
        return items[0] if items else None
    first = expression(items[0])
    is_same_type = _key_type(first)
    keys = [first, *(expression(item) for item in items[1:])]
    if not all(map(is_same_type, keys)):
        raise EvaluationError(f"invalid type, must be {'number' if is_number(first) else 'string'}")
    _charge_keys(keys, runtime)
    return items[choose(range(len(items)), key=keys.__getitem__)]


def _charge_keys(keys: list[JSON], runtime: Runtime) -> None:
    """Charge for comparing keys of one type: texts are read, and one text may be in the list many times."""
    if keys and isinstance(keys[0], str):
        charge_texts(keys, runtime.budget)


FUNCTIONS: Final = (largest, largest_by, smallest, smallest_by, sort, sort_by)
