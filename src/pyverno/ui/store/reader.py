"""Reads the store: pages of results and objects, counts, facets, history.

Counts and facets read series. A page of results follows an index from the worst on, or, where few results can fit,
begins with those; no query sorts the whole table.
"""

from __future__ import annotations

import base64
import binascii
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.report.collected import STATUSES
from pyverno.ui.store.conditions import (
    Condition,
    narrowing_statements,
    object_condition,
    result_condition,
    series_condition,
    sort_clause,
)
from pyverno.ui.store.filters import Filter
from pyverno.ui.store.rows import RESULT_COLUMNS, RESULT_TABLES, StoredResult, as_time, read_row
from pyverno.ui.store.schema import SERIES_COLUMNS, connect
from pyverno.ui.store.scope import Scope
from pyverno.value import dataclass

__all__ = ["FACETS", "MOST_ROWS", "Page", "Reader"]

MOST_ROWS: Final = 1000
"""The longest page."""

_MOST_COUNTED: Final = 20_000
"""Results are counted up to here where series alone cannot tell; above, a total is a lower bound."""

_MOST_FACET_VALUES: Final = 200
_DAY: Final = 86_400
FACETS: Final = ("status", "severity", "policy", "namespace", "kind", "source", "category")
_JOINED: Final = "results r JOIN series s ON s.id = r.series JOIN objects o ON o.id = r.object"
_BY_SERIES: Final = "series s CROSS JOIN results r ON r.series = s.id CROSS JOIN objects o ON o.id = r.object"
_BY_TIME: Final = "results r CROSS JOIN series s ON s.id = r.series CROSS JOIN objects o ON o.id = r.object"
_TEXTS: Final = "CROSS JOIN texts m ON m.id = r.message CROSS JOIN texts p ON p.id = r.properties"

_ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "worst": ("s.rank", "s.policy", "s.rule", "s.namespace", "s.kind", "s.id", "r.object", "r.id"),
    "latest": ("-r.changed", "-r.id"),
    "oldest": ("r.first_seen", "r.id"),
}


@dataclass(frozen=True, slots=True)
class Page:
    """One page: rows, how many there are in all (`is_lower_bound` where only so many were counted), and the next."""

    items: Sequence[StoredResult]
    total: int
    is_lower_bound: bool
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """How to reach the selected results: their condition, and how many there are.

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
        if self.has_ids or self.total <= _MOST_COUNTED:
            return _JOINED
        return {"worst": _BY_SERIES, "": _JOINED}.get(order, _BY_TIME)


class Reader:
    """Answers questions about a store; one connection, for one thread at a time.

    With a `scope`, answers are about results and objects of these namespaces only, whatever is asked.
    """

    def __init__(self, path: str) -> None:
        """Open the store for reading."""
        self.scope: Scope = None
        self._connection = connect(path, is_reader=True)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def results(
        self,
        selected: Filter,
        *,
        order: str = "worst",
        limit: int = 50,
        cursor: str = "",
        offset: int = 0,
        sorted_by: Sequence[str] = (),
        is_descending: bool = False,
    ) -> Page:
        """Return a page of results in an order (worst, latest, oldest), from a cursor on; raises UsageError.

        `offset` skips results, which takes as long as reading them; a cursor does not. `sorted_by` are columns by
        Policy Reporter's names, which replace the order where all results are counted; unknown names have no effect.
        """
        columns = _ORDERS.get(order)
        if columns is None:
            raise UsageError(f"unknown order `{order}`: expected {', '.join(_ORDERS)}")
        chosen = self._choose(selected)
        keys = ", ".join(each.removeprefix("-") for each in columns)
        after = _after(columns, cursor) if cursor else Condition("1")
        where = _both(chosen.where, after)
        sorting = ""
        if chosen.total <= _MOST_COUNTED and not chosen.is_lower_bound:
            sorting = sort_clause(sorted_by, is_descending=is_descending)
        rows = self._all(
            f"SELECT {RESULT_COLUMNS}, {keys} FROM {chosen.tables(order)} {_TEXTS} WHERE {where.sql} "
            f"ORDER BY {sorting or _direction(columns)} LIMIT ? OFFSET ?",
            (*where.values, limit + 1, offset),
        )
        items = [read_row(row) for row in rows[:limit]]
        if sorting:
            return Page(items, chosen.total, chosen.is_lower_bound)
        following = _encode(order, rows[limit - 1][-len(columns) :]) if len(rows) > limit else ""
        return Page(items, chosen.total, chosen.is_lower_bound, following)

    def each_result(self, selected: Filter) -> Iterator[StoredResult]:
        """Yield every selected result from the worst to the best, page by page."""
        cursor = ""
        while True:
            page = self.results(selected, limit=MOST_ROWS, cursor=cursor)
            yield from page.items
            cursor = page.cursor
            if not cursor:
                return

    def result(self, number: int) -> StoredResult | None:
        """Return one result, open or resolved."""
        allowed = self._allowed("s")
        row = self._connection.execute(
            f"SELECT {RESULT_COLUMNS} FROM {RESULT_TABLES} WHERE r.id = ? AND {allowed.sql}", (number, *allowed.values)
        ).fetchone()
        return None if row is None else read_row(row)

    def exception_uses(self) -> Mapping[tuple[str, str], int]:
        """Return by cluster and name of an exception how many open results it explains."""
        allowed = self._allowed("s")
        rows = self._all(
            "SELECT s.cluster, t.text, count(*) FROM texts t CROSS JOIN results r ON r.properties = t.id "
            "CROSS JOIN series s ON s.id = r.series WHERE t.text LIKE '%\"exceptions\":%' AND r.resolved IS NULL "
            f"AND {allowed.sql} GROUP BY s.cluster, t.id",
            allowed.values,
        )
        found: Counter[tuple[str, str]] = Counter()
        for cluster, text, count in rows:
            properties = orjson.loads(text)
            names = properties.get("exceptions", "") if isinstance(properties, dict) else ""
            for name in filter(None, str(names).split(",")):
                found[cluster, name] += count
        return found

    def count(self, selected: Filter) -> tuple[int, bool]:
        """Return how many results are selected, and whether that is only a lower bound."""
        chosen = self._choose(selected)
        return chosen.total, chosen.is_lower_bound

    def facets(self, selected: Filter, names: Sequence[str] = FACETS) -> JSONObject:
        """Return, for each field, its values with their counts; a field's own patterns do not narrow its values.

        Where more results are selected than are counted, the counts are those of the results that were.
        """
        wrong = next((name for name in names if name not in SERIES_COLUMNS), None)
        if wrong is not None:
            raise UsageError(f"unknown facet `{wrong}`: expected {', '.join(SERIES_COLUMNS)}")
        found: dict[str, Counter[str]] = {name: Counter() for name in names}
        own = [name for name in names if name in selected.fields]
        for fields, chosen in (
            (tuple(name for name in names if name not in own), self._choose(selected)),
            *(((name,), self._choose(selected.without(name))) for name in own),
        ):
            for *values, count in self._combinations(chosen, fields) if fields else ():
                for name, value in zip(fields, values, strict=True):
                    found[name][value] += count
        return {
            name: [
                {"value": value, "count": count}
                for value, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_FACET_VALUES]
            ]
            for name, counts in found.items()
        }

    def summary(self, selected: Filter, by: str = "") -> JSONObject:
        """Return the counts by status, and by the values of a field and status; a field that is empty is `-`."""
        if by and by not in SERIES_COLUMNS:
            raise UsageError(f"unknown field `{by}`: expected {', '.join(SERIES_COLUMNS)}")
        groups: dict[str, dict[str, int]] = {}
        for *values, status, count in self._combinations(self._choose(selected), (by, "status") if by else ("status",)):
            groups.setdefault(values[0] if values else "", dict.fromkeys(STATUSES, 0))[status] += count
        total = {status: sum(counts[status] for counts in groups.values()) for status in STATUSES}
        if not by:
            return {"summary": total}
        ordered = sorted(
            groups.items(), key=lambda each: (-each[1]["fail"] - each[1]["error"], -each[1]["warn"], each[0])
        )
        return {"summary": total, "groups": [{"name": name or "-", **counts} for name, counts in ordered]}

    def resources(self, selected: Filter, *, limit: int = 50, offset: int = 0) -> JSONObject:
        """Return objects with their counts by status, those with most problems first."""
        counts = ", ".join(STATUSES)
        if selected.is_about_objects:
            where = _both(object_condition(selected), self._allowed("o"))
            sql = (
                f"SELECT o.id, o.cluster, o.api_version, o.kind, o.namespace, o.name, {counts} FROM objects o "
                f"WHERE {where.sql} AND o.fail + o.error + o.warn + o.skip + o.pass > 0 "
                "ORDER BY o.fail DESC, o.error DESC, o.warn DESC, o.namespace, o.kind, o.name, o.id LIMIT ? OFFSET ?"
            )
        else:
            chosen = self._choose(selected)
            where = chosen.where
            sums = ", ".join(f"sum(s.status = '{status}')" for status in STATUSES)
            sql = (
                f"SELECT o.id, o.cluster, o.api_version, o.kind, o.namespace, o.name, {sums} "
                f"FROM {chosen.tables('')} WHERE {where.sql} GROUP BY o.id "
                "ORDER BY 7 DESC, 8 DESC, 9 DESC, 5, 4, 6, 1 LIMIT ? OFFSET ?"
            )
        rows = self._all(sql, (*where.values, limit + 1, offset))
        return {"items": [_object(row) for row in rows[:limit]], "next": offset + limit if len(rows) > limit else None}

    def count_resources(self, selected: Filter) -> int:
        """Return how many objects have selected results."""
        if selected.is_about_objects:
            where = _both(object_condition(selected), self._allowed("o"))
            open_results = "o.fail + o.error + o.warn + o.skip + o.pass > 0"
            ((count,),) = self._all(
                f"SELECT count(*) FROM objects o WHERE {where.sql} AND {open_results}", where.values
            )
        else:
            chosen = self._choose(selected)
            sql = f"SELECT count(DISTINCT r.object) FROM {chosen.tables('')} WHERE {chosen.where.sql}"
            ((count,),) = self._all(sql, chosen.where.values)
        return int(count)

    def object_severities(self, selected: Filter, objects: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
        """Return, for each of some objects, how many selected results it has by severity."""
        where = _both(_both(series_condition(selected), result_condition(selected)), self._allowed("s"))
        marks = ", ".join("?" * len(objects))
        found: dict[int, dict[str, int]] = {number: {} for number in objects}
        for number, severity, count in self._all(
            f"SELECT r.object, s.severity, count(*) FROM {_JOINED} WHERE r.object IN ({marks}) AND {where.sql} "
            "GROUP BY 1, 2",
            (*objects, *where.values),
        ):
            found[number][severity] = count
        return found

    def counts(self, selected: Filter, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of fields that occur together, each combination once, with the number of results."""
        found: Counter[tuple[str, ...]] = Counter()
        for *values, count in self._combinations(self._choose(selected), names):
            found[tuple(values)] += count
        return [(*values, count) for values, count in sorted(found.items())]

    def resource(self, number: int) -> JSONObject | None:
        """Return one object with its open results, and those that were resolved."""
        allowed = self._allowed("objects")
        row = self._connection.execute(
            f"SELECT id, cluster, api_version, kind, namespace, name FROM objects WHERE id = ? AND {allowed.sql}",
            (number, *allowed.values),
        ).fetchone()
        if row is None:
            return None
        rows = self._all(
            f"SELECT {RESULT_COLUMNS} FROM {RESULT_TABLES} WHERE r.object = ? "
            "ORDER BY r.resolved IS NOT NULL, s.rank, s.policy, s.rule LIMIT ?",
            (number, MOST_ROWS),
        )
        results = [read_row(each) for each in rows]
        counts = {
            status: sum(each.resolved is None and each.collected.finding.status == status for each in results)
            for status in STATUSES
        }
        return {
            **_object((*row, *counts.values())),
            "results": [each.to_json() for each in results if each.resolved is None],
            "resolved": [each.to_json() for each in results if each.resolved is not None],
        }

    def changes(self, selected: Filter, *, limit: int = 100, after: int = 0) -> list[JSONObject]:
        """Return the latest transitions of selected results, from the latest; with `after`, those that follow it."""
        where = _both(_both(series_condition(selected), result_condition(selected)), self._allowed("s"))
        rows = self._all(
            f"SELECT {RESULT_COLUMNS}, c.id, c.at, c.before, c.after FROM changes c JOIN results r ON r.id = c.result "
            "JOIN series s ON s.id = r.series JOIN objects o ON o.id = r.object JOIN texts m ON m.id = r.message "
            f"JOIN texts p ON p.id = r.properties WHERE c.id > ? AND {where.sql} ORDER BY c.id DESC LIMIT ?",
            (after, *where.values, limit),
        )
        return [
            {
                "id": row[-4],
                "at": as_time(row[-3]),
                "before": row[-2],
                "after": row[-1],
                "result": read_row(row[:-4]).to_json(),
            }
            for row in rows
        ]

    def trend(self, selected: Filter, days: int, now: int) -> list[JSONObject]:
        """Return the counts by status at the end of each of the last days, and now."""
        where = _both(series_condition(selected, "d"), self._allowed("d"))
        unknown = {*selected.fields} - {"cluster", "namespace", "policy", "source", "severity", "status"}
        if unknown or not selected.is_about_series:
            raise UsageError("history is kept by cluster, namespace, policy, source, severity and status only")
        rows = self._all(
            "SELECT d.day, d.status, sum(d.open) FROM days d "
            f"WHERE d.day > ? AND d.day < ? AND {where.sql} GROUP BY 1, 2",
            (now // _DAY - days, now // _DAY, *where.values),
        )
        found: dict[int, dict[str, int]] = {}
        for day, status, count in rows:
            found.setdefault(day, dict.fromkeys(STATUSES, 0))[status] = count
        past: list[JSONObject] = [{"day": as_time(day * _DAY)[:10], **counts} for day, counts in sorted(found.items())]
        return [*past, {"day": as_time(now)[:10], **self.summary(selected)["summary"]}]

    # ------------------------------------------------------------------------------------------------------ statements

    def _allowed(self, table: str) -> Condition:
        """Return the condition that rows of a table are in scope."""
        if self.scope is None:
            return Condition("1")
        names = sorted(self.scope)
        return Condition(f"{table}.namespace IN ({', '.join('?' * len(names))})", tuple(names))

    def _choose(self, selected: Filter) -> _Chosen:
        """Return how to reach the selected results: by series, or by the ids that an index gives."""
        on_series = _both(series_condition(selected), self._allowed("s"))
        if selected.is_about_series:
            sql = f"SELECT coalesce(sum(s.open), 0) FROM series s WHERE {on_series.sql}"
            ((total,),) = self._all(sql, on_series.values)
            return _Chosen(_both(on_series, result_condition(selected)), total, on_series=on_series)
        where = _both(on_series, result_condition(selected))
        for narrowing in narrowing_statements(selected):
            rows = self._all(f"SELECT id FROM ({narrowing.sql}) LIMIT {_MOST_COUNTED + 1}", narrowing.values)
            if len(rows) <= _MOST_COUNTED:
                ids = self._matching(_JOINED, _both(_among([number for (number,) in rows]), where))
                return _Chosen(_among(ids), len(ids), has_ids=True)
        ids = self._matching(_BY_SERIES, where)
        if len(ids) <= _MOST_COUNTED:
            return _Chosen(_among(ids), len(ids), has_ids=True)
        return _Chosen(where, _MOST_COUNTED, is_lower_bound=True, sample=_among(ids))

    def _matching(self, tables: str, where: Condition) -> list[int]:
        sql = f"SELECT r.id FROM {tables} WHERE {where.sql} LIMIT {_MOST_COUNTED + 1}"
        return [number for (number,) in self._all(sql, where.values)]

    def _combinations(self, chosen: _Chosen, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of fields that occur together, with the number of results."""
        columns = ", ".join(f"s.{name}" for name in names)
        if chosen.on_series is not None:
            where = chosen.on_series
            return self._all(f"SELECT {columns}, s.open FROM series s WHERE {where.sql} AND s.open > 0", where.values)
        where = chosen.sample or chosen.where
        return self._all(f"SELECT {columns}, count(*) FROM {_JOINED} WHERE {where.sql} GROUP BY s.id", where.values)

    def _all(self, sql: str, values: Sequence[object]) -> list[Any]:
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except sqlite3.OperationalError as error:
            raise UsageError(f"the store cannot answer: {error}") from error


def _among(ids: Sequence[int]) -> Condition:
    return Condition("r.id IN (SELECT value FROM json_each(?))", (orjson.dumps(ids).decode(),))


def _both(first: Condition, second: Condition) -> Condition:
    return Condition(f"({first.sql}) AND ({second.sql})", (*first.values, *second.values))


def _direction(columns: Sequence[str]) -> str:
    return ", ".join(f"{each[1:]} DESC" if each.startswith("-") else each for each in columns)


def _encode(order: str, keys: Sequence[object]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([order, *keys])).decode().rstrip("=")


def _after(columns: Sequence[str], cursor: str) -> Condition:
    """Return the condition that a row follows a cursor; raises UsageError for a cursor of another order, or none."""
    try:
        order, *keys = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise UsageError("the cursor is not one that this server gave") from error
    if (
        _ORDERS.get(order) != columns
        or len(keys) != len(columns)
        or not all(isinstance(key, str | int) for key in keys)
    ):
        raise UsageError("the cursor belongs to another order")
    names = ", ".join(each.removeprefix("-") for each in columns)
    sign = "<" if columns[0].startswith("-") else ">"
    return Condition(f"({names}) {sign} ({', '.join('?' * len(keys))})", tuple(keys))


def _object(row: Sequence[Any]) -> JSONObject:
    number, cluster, api_version, kind, namespace, name, *counts = row
    found = {
        "id": number,
        "cluster": cluster,
        "apiVersion": api_version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
    }
    return {key: value for key, value in found.items() if value != ""} | {
        "status": dict(zip(STATUSES, counts, strict=True))
    }
