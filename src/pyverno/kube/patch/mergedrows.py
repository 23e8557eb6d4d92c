"""Rows of key texts in which elements with some of their keys complete each other: ports 80 and 80/TCP are one.

Completing n rows takes n log n steps.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["Row", "complete_rows"]

Row: TypeAlias = tuple[str, ...]
"""The texts of an element's merge keys, "" for a missing one."""


def complete_rows(rows: list[Row]) -> list[Row]:
    """Return rows in which those that agree where both have a text count as the same element: 80 and 80/TCP.

    Every row is joined with every other in turn; the index finds the next one that a join changes, and each join fills
    a gap, so that there are no more joins than gaps.
    """
    index = _RowIndex(rows)
    if len(index.gaps) == 1:
        return rows
    for at in range(len(rows)):
        other = index.next(at, 0)
        while other is not None:
            index.join(at, other)
            other = index.next(at, other + 1)
    return index.rows


class _RowIndex:
    """Rows by which of their texts are there, and by the texts that such rows share with others."""

    __slots__ = ("full", "gaps", "places", "rows")

    def __init__(self, rows: list[Row]) -> None:
        self.rows = list(rows)
        self.full = (1 << len(rows[0])) - 1
        self.gaps = sorted({_present(row) for row in rows})
        """Which columns rows have, as bits; all combinations that joining can make included."""
        if len(self.gaps) > 1:
            self.gaps = [*range(self.full + 1)]
        self.places: dict[tuple[int, Row, int], list[int]] = {}
        if len(self.gaps) > 1:
            for at in range(len(rows)):
                self.add(at)

    def keys_of(self, row: Row) -> Iterator[tuple[int, Row, int]]:
        present = _present(row)
        for shared in range(self.full + 1):
            if shared & ~present == 0:
                yield present, _project(row, shared), shared

    def add(self, at: int) -> None:
        for key in self.keys_of(self.rows[at]):
            insort(self.places.setdefault(key, []), at)

    def remove(self, at: int) -> None:
        for key in self.keys_of(self.rows[at]):
            places = self.places[key]
            del places[bisect_left(places, at)]

    def next(self, at: int, start: int) -> int | None:
        """Return the first other row from `start` on that agrees with a row, or None."""
        row = self.rows[at]
        present = _present(row)
        nearest: int | None = None
        for other in self.gaps:
            shared = present & other
            if other == present or not (shared or present | other != self.full):
                continue
            places = self.places.get((other, _project(row, shared), shared))
            if places and (found := bisect_left(places, start)) < len(places):
                nearest = places[found] if nearest is None else min(nearest, places[found])
        return nearest

    def join(self, left: int, right: int) -> None:
        joined = tuple(a or b for a, b in zip(self.rows[left], self.rows[right], strict=True))
        for at in (left, right):
            self.remove(at)
            self.rows[at] = joined
            self.add(at)


def _present(row: Row) -> int:
    return sum(1 << at for at, text in enumerate(row) if text)


def _project(row: Row, columns: int) -> Row:
    return tuple(text for at, text in enumerate(row) if columns >> at & 1)
