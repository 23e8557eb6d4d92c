"""Selection by a filter within a scope: how many results, and how the database reaches them.

Where columns of series alone decide, series give the number. Else an index finds the results by the narrowest part of
the filter; counting stops at a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyverno.ui.store.conditions import (
    both,
    narrowing_statements,
    object_condition,
    order_condition,
    result_condition,
    series_condition,
)
from pyverno.ui.store.database import Condition, Connection, Role, StoreUnavailableError
from pyverno.ui.store.filters import Filter
from pyverno.ui.store.opening import connect
from pyverno.ui.store.scope import Scope
from pyverno.ui.store.seriescolumns import SeriesColumns
from pyverno.value import dataclass

__all__ = ["BY_RESULT", "MOST_COUNTED", "Selected", "Selector"]

MOST_COUNTED: Final = 20_000
"""Results are counted up to here where series alone cannot tell; above, a total is a lower bound."""

BY_RESULT: Final = "results r JOIN series s ON s.id = r.series JOIN objects o ON o.id = r.object"
_BY_SERIES: Final = "series s CROSS JOIN results r ON r.series = s.id CROSS JOIN objects o ON o.id = r.object"
_IN_ORDER: Final = _BY_SERIES.replace("series s", "series s INDEXED BY series_order", 1)
_BY_TIME: Final = "results r CROSS JOIN series s ON s.id = r.series CROSS JOIN objects o ON o.id = r.object"


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected results: the condition that reaches them, and how many there are.

    `on_series` is the condition on series where those alone decide; `has_ids` marks a condition that lists the results;
    `sample` lists as many as are counted where there are more.
    """

    where: Condition
    total: int
    is_lower_bound: bool = False
    has_ids: bool = False
    on_series: Condition | None = None
    sample: Condition | None = None

    def tables(self, order: str) -> str:
        """Return the tables in the order in which they are read: SQLite keeps the order of CROSS JOIN."""
        if self.has_ids:
            return BY_RESULT
        if self.total <= MOST_COUNTED:
            return _BY_SERIES
        return {"worst": _IN_ORDER, "": BY_RESULT}.get(order, _BY_TIME)


class Selector:
    """Selects results; one connection, for one thread at a time.

    With a `scope`, only results and objects of these namespaces are selected, whatever the filter.
    """

    def __init__(self, location: str, columns: SeriesColumns) -> None:
        """Open the store for reading; readers of one store may share `columns`."""
        self._columns = columns
        self.scope: Scope = None
        self._connection: Connection = connect(location, Role.READER)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def interrupt(self) -> None:
        """End the statement that another thread runs with an error."""
        self._connection.interrupt()

    def on_objects(self, selected: Filter) -> Condition:
        """Return the condition on objects (`o`) of a filter about objects alone."""
        return both(object_condition(self._connection.dialect, selected), self.allowed("o"))

    def on_series(self, selected: Filter, table: str = "s") -> Condition:
        """Return the condition on series, or on a table with their columns."""
        return both(series_condition(self._connection.dialect, selected, table), self.allowed(table))

    def property_of(self, column: str, key: str) -> Condition:
        """Return the value at a key of a column with JSON objects."""
        return self._connection.dialect.property_of(column, key)

    def on_results(self, selected: Filter) -> Condition:
        """Return the whole condition on results (`r`) with their series and objects."""
        return both(self.on_series(selected), result_condition(self._connection.dialect, selected))

    def allowed(self, table: str) -> Condition:
        """Return the condition that rows of a table are in scope."""
        if self.scope is None:
            return Condition("TRUE")
        names = sorted(self.scope)
        return Condition(f"{table}.namespace IN ({', '.join('?' * len(names))})", tuple(names))

    def choose(self, selected: Filter) -> Selected:
        """Return how to reach the selected results: by series, or by the ids that an index gives."""
        on_series = self.on_series(selected)
        if selected.is_about_series:
            sql = f"SELECT coalesce(sum(s.open), 0) FROM series s WHERE {on_series.sql}"
            ((total,),) = self.all(sql, on_series.values)
            return Selected(both(self.on_results(selected), order_condition(selected)), total, on_series=on_series)
        where = self.on_results(selected)
        for narrowing in narrowing_statements(self._connection.dialect, selected):
            rows = self.all(f"SELECT id FROM ({narrowing.sql}) AS found LIMIT {MOST_COUNTED + 1}", narrowing.values)
            if len(rows) <= MOST_COUNTED:
                ids = self._matching(BY_RESULT, both(self._among([number for (number,) in rows]), where))
                return Selected(self._among(ids), len(ids), has_ids=True)
        ids = self._matching(_BY_SERIES, where)
        if len(ids) <= MOST_COUNTED:
            return Selected(self._among(ids), len(ids), has_ids=True)
        return Selected(where, MOST_COUNTED, is_lower_bound=True, sample=self._among(ids))

    def _matching(self, tables: str, where: Condition) -> list[int]:
        sql = f"SELECT r.id FROM {tables} WHERE {where.sql} LIMIT {MOST_COUNTED + 1}"
        return [number for (number,) in self.all(sql, where.values)]

    def count_values(self, selected: Filter, names: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """Return, for each of some fields, the number of selected results by value."""
        if not names:
            return {}
        if selected.is_about_series:
            where = self.on_series(selected)
            rows = self.all(f"SELECT s.id, s.open FROM series s WHERE {where.sql} AND s.open > 0", where.values)
        else:
            chosen = self.choose(selected)
            where = chosen.sample or chosen.where
            sql = f"SELECT s.id, count(*) FROM {BY_RESULT} WHERE {where.sql} GROUP BY s.id"
            rows = self.all(sql, where.values)
        return self._columns.count(self._connection, rows, names)

    def combinations(self, chosen: Selected, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of fields that occur together, with the number of results; `name` is that of objects."""
        columns = ", ".join("o.name" if name == "name" else f"s.{name}" for name in names)
        if chosen.on_series is not None and "name" not in names:
            where = chosen.on_series
            return self.all(f"SELECT {columns}, s.open FROM series s WHERE {where.sql} AND s.open > 0", where.values)
        where = chosen.sample or chosen.where
        return self.all(f"SELECT {columns}, count(*) FROM {BY_RESULT} WHERE {where.sql} GROUP BY s.id", where.values)

    def _among(self, ids: Sequence[int]) -> Condition:
        return self._connection.dialect.among("r.id", ids)

    def one(self, sql: str, values: Sequence[object]) -> Any:
        """Return the first row of a statement, or None."""
        return next(iter(self.all(sql, values)), None)

    def all(self, sql: str, values: Sequence[object]) -> list[Any]:
        """Return the rows of a statement; raises StoreUnavailableError."""
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except self._connection.failures as error:
            raise StoreUnavailableError(f"the store cannot answer: {error}") from error
