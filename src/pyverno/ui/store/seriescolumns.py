"""The columns of series in memory, for counts by value: a query only gives numbers of series, and how many are open.

Series never change their columns, and their numbers are never used again, so that only new ones have to be read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Final

from pyverno.ui.store.database import Connection
from pyverno.ui.store.schema import SERIES_COLUMNS

__all__ = ["SeriesColumns"]

_READ: Final = f"SELECT id, {', '.join(SERIES_COLUMNS)} FROM series WHERE id > ? ORDER BY id"


class _Column:
    """The values of one column, each once, and the index of its value for each series."""

    __slots__ = ("codes", "numbers", "values")

    def __init__(self) -> None:
        self.codes = array("I")
        self.values: list[str] = []
        self.numbers: dict[str, int] = {}

    def put(self, series: int, value: str) -> None:
        code = self.numbers.get(value)
        if code is None:
            code = self.numbers[value] = len(self.values)
            self.values.append(value)
        self.codes.extend([0] * (series - len(self.codes)))
        self.codes.append(code)


class SeriesColumns:
    """Columns that all readers of a store share."""

    def __init__(self) -> None:
        """Begin without series."""
        self._lock = Lock()
        self._last = -1
        self._columns = {name: _Column() for name in SERIES_COLUMNS}

    def count(
        self, connection: Connection, rows: Sequence[tuple[int, int]], names: Iterable[str]
    ) -> Mapping[str, Mapping[str, int]]:
        """Return, for each of some columns, the sums of numbers by value; `rows` are series and their numbers."""
        self._read(connection, max((series for series, _ in rows), default=-1))
        return {name: _sums(self._columns[name], rows) for name in names}

    def _read(self, connection: Connection, last: int) -> None:
        with self._lock:
            if last <= self._last:
                return
            for number, *values in connection.execute(_READ, (self._last,)):
                for name, value in zip(SERIES_COLUMNS, values, strict=True):
                    self._columns[name].put(number, value)
                self._last = number


def _sums(column: _Column, rows: Sequence[tuple[int, int]]) -> Mapping[str, int]:
    codes, sums = column.codes, [0] * len(column.values)
    for series, number in rows:
        sums[codes[series]] += number
    return {value: number for value, number in zip(column.values, sums, strict=False) if number}
