"""What an analysis of many policies leaves out: pairs of rules beyond a number, and all but some of the objects.

n policies that match the same kind are n² pairs. Comparing the verdicts of two rules takes a microsecond; searching
objects that tell them apart takes tenths of a second, so that only so many pairs are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from pyverno.value import dataclass

__all__ = ["MOST_OBJECTS", "MOST_PAIRS", "MOST_POLICIES", "MOST_VERDICTS", "Sample", "spread"]

MOST_POLICIES: Final = 5000
"""Policies and exceptions of one analysis."""

MOST_PAIRS: Final = 1000
"""Pairs of rules that one check searches objects for."""

MOST_OBJECTS: Final = 4000
"""Objects on which one mutation, exception or policy is tried, beside those of its own."""

MOST_VERDICTS: Final = 40_000_000
"""Verdicts of policies on generated objects: many policies have fewer objects each."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Sample:
    """How many pairs of rules, or chains of objects, a check might have tried, and how many it tried."""

    possible: int = 0
    tried: int = 0

    def take(self, most: int = MOST_PAIRS) -> bool:
        """Count one; return whether it is among the first `most`.

        >>> sample = Sample()
        >>> [sample.take(2) for _ in "abc"], sample.tried, sample.possible
        ([True, True, False], 2, 3)
        """
        self.possible += 1
        self.tried += self.possible <= most
        return self.possible <= most


def spread(items: Sequence[_T], most: int = MOST_OBJECTS) -> Sequence[_T]:
    """Return at most so many items, taken evenly from all of them.

    >>> spread("abcdefgh", 3)
    ['a', 'c', 'f']
    """
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]
