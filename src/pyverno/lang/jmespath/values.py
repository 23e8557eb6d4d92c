"""Values as closures and functions see them: the missing key, truth, types and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from pyverno.errors import BudgetExceededError
from pyverno.kube.json import JSON, encode
from pyverno.lang.runtime import Budget, Runtime
from pyverno.value import dataclass

__all__ = ["ExpRef", "Missing", "PlaceholderValues", "Run", "check_size", "is_false", "text_of", "whole"]

PlaceholderValues: TypeAlias = Sequence[JSON]
"""The values of an expression's placeholders, by index."""

Run: TypeAlias = Callable[[JSON, Runtime, PlaceholderValues], JSON]
"""A compiled node: from the current value to the result, which is a `Missing` when a map lacks the key."""


class Missing:
    """Result of a field that a map does not have; never leaves the package (`Expression.evaluate` raises instead)."""

    __slots__ = ("is_data", "key")  # no dataclass: one is made for every missing key

    def __init__(self, key: str, is_data: bool = False) -> None:
        self.key = key
        self.is_data = is_data


@dataclass(frozen=True, slots=True, eq=False)
class ExpRef:
    """The argument `&expression` of a function."""

    run: Run
    runtime: Runtime
    placeholders: PlaceholderValues

    def __call__(self, value: JSON) -> JSON:
        """Return the expression's result on a value; a missing key gives None."""
        result = self.run(value, self.runtime, self.placeholders)
        return None if result.__class__ is Missing else result


def is_false(value: JSON) -> bool:
    """Return whether JMESPath takes a value as false: null, false, and empty texts, lists and maps; never a number.

    >>> [is_false(value) for value in (None, False, "", [], {}, 0, "0")]
    [True, True, True, True, True, False, False]
    """
    return not value and value.__class__ is not int and value.__class__ is not float


def whole(value: JSON) -> JSON:
    """Return a lazily loading root document with all its keys loaded; other values unchanged."""
    if value.__class__ is dict or not isinstance(value, dict):
        return value
    load = getattr(value, "materialise", None)
    return value if load is None else load()


def text_of(value: JSON, budget: Budget) -> str:
    """Return a placeholder's value as the text to insert: texts as they are, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    check_size(value, budget)
    return encode(value)


_FLAT_SIZE: Final = 5


MAX_PARTS: Final = 131_072
"""Items and entries of the largest value that is written as text."""
_CHECK_EVERY: Final = 1024


def check_size(value: JSON, budget: Budget, *, max_parts: int = MAX_PARTS) -> int:
    """Charge for a value that is to be written out; raise BudgetExceededError when it would be too large.

    Values share structure, so a small one in memory may be a huge one in text; the walk stops at the limit. Returns the
    number of its parts.
    """
    if value.__class__ is not list and not isinstance(value, dict):
        return 1
    limit = budget.text_bytes
    total, nodes = 0, 0
    todo: list[JSON] = [value]
    while todo:
        current = todo.pop()
        nodes += 1
        if isinstance(current, str):
            total += len(current) + 2
        elif isinstance(current, dict):
            total += 2 + sum(map(len, current)) + 4 * len(current)
            todo.extend(current.values())
        elif isinstance(current, list):
            total += 2 + len(current)
            todo.extend(current)
        else:
            total += _FLAT_SIZE
        if total > limit:
            budget.produce(total)
        if not nodes % _CHECK_EVERY:
            budget.charge_steps(_CHECK_EVERY)
            if nodes > max_parts:
                raise BudgetExceededError(
                    f"a value of more than {max_parts} parts is not written out", resource="bytes"
                )
    budget.charge_steps(nodes % _CHECK_EVERY)
    budget.produce(total)
    return nodes
