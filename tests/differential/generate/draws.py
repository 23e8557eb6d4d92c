"""Small draws that the generators share."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

__all__ = ["chance", "some"]

T = TypeVar("T")


def chance(random: Random, probability: float) -> bool:
    """Return true with a probability."""
    return random.random() < probability


def some(random: Random, items: Sequence[T], low: int, high: int) -> list[T]:
    """Return between `low` and `high` different items, in their order."""
    count = min(random.randint(low, high), len(items))
    return [items[index] for index in sorted(random.sample(range(len(items)), count))]
