"""Costs of calls that depend on their arguments, as cel-go and Kubernetes count them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from pyverno.lang.cel.values import Optional, Value, map_items, size_of

__all__ = ["by_element", "by_regex", "by_result", "by_size", "by_traversal", "containment", "fixed", "value_size"]

_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25


def value_size(value: Value) -> int:
    """Return the size of a text, list or map, or of what an optional holds; 1 for everything else."""
    if isinstance(value, Optional) and value.present:
        return value_size(value.value)
    size = size_of(value)
    return 1 if size is None else size


def fixed(cost: int) -> Callable[[tuple[Value, ...], Value], int]:
    """Return a cost that is always the same."""
    return lambda _args, _result: cost


def by_size(position: int = 0, factor: float = 1.0) -> Callable[[tuple[Value, ...], Value], int]:
    """Return the cost of walking once (times `factor`) over an argument."""
    return lambda args, _result: math.ceil(value_size(args[position]) * factor * _TRAVERSAL)


def by_result(factor: float = 1.0) -> Callable[[tuple[Value, ...], Value], int]:
    """Return the cost of walking over the result."""
    return lambda _args, result: math.ceil(value_size(result) * factor * _TRAVERSAL)


def by_regex(text: int = 0, pattern: int = 1) -> Callable[[tuple[Value, ...], Value], int]:
    """Return the cost of matching one argument against another."""

    def cost(args: tuple[Value, ...], _result: Value) -> int:
        walk = math.ceil((1.0 + value_size(args[text])) * _TRAVERSAL)
        return walk * math.ceil(value_size(args[pattern]) * _REGEX)

    return cost


def containment(args: tuple[Value, ...], _result: Value) -> int:
    """Return the cost of looking for one text in another."""
    return math.ceil(value_size(args[0]) * _TRAVERSAL) * math.ceil(value_size(args[1]) * _TRAVERSAL)


def by_element(args: tuple[Value, ...], _result: Value) -> int:
    """Return the cost of comparing the elements of a list once, texts by their size."""
    return by_traversal(args[0])


def by_traversal(value: Value) -> int:
    """Return Kubernetes' cost of walking over a value with everything in it."""
    # Kubernetes: apiserver/pkg/cel/library/cost.go, traversalCost
    total = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            total += int(len(item.encode("utf-8", "surrogatepass")) * _TRAVERSAL)
        elif isinstance(item, bytes):
            total += int(len(item) * _TRAVERSAL)
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
        elif isinstance(item, dict):
            for pair in map_items(item):
                waiting.extend(pair)
        else:
            total += 1
    return total
