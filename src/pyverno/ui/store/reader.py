"""Reads the store: pages of results and objects, counts, facets, history.

Counts and facets read series. A page of results follows an index from the worst on, or, where few results can fit,
begins with those; no query sorts the whole table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from pyverno.errors import UsageError
from pyverno.kube.json import JSONObject
from pyverno.report.collected import STATUSES
from pyverno.ui.store.conditions import both, sort_clause
from pyverno.ui.store.database import Condition
from pyverno.ui.store.filters import Filter
from pyverno.ui.store.keyfacets import count_key, is_key_facet, list_keys
from pyverno.ui.store.objects import count_objects, list_objects, object_severities, read_object
from pyverno.ui.store.pages import ORDERS, Page, after_cursor, encode_cursor, order_clause
from pyverno.ui.store.rows import RESULT_COLUMNS, RESULT_TABLES, StoredResult, as_time, read_row
from pyverno.ui.store.schema import SERIES_COLUMNS
from pyverno.ui.store.scope import Scope
from pyverno.ui.store.selection import MOST_COUNTED, Selector
from pyverno.ui.store.seriescolumns import SeriesColumns

__all__ = ["FACETS", "MOST_ROWS", "Page", "Reader"]

MOST_ROWS: Final = 1000
"""The longest page."""

_MOST_FACET_VALUES: Final = 200
_MOST_FACETS: Final = 40
_MOST_PROPERTY_VALUES: Final = 10_000
_DAY: Final = 86_400
FACETS: Final = ("status", "severity", "policy", "namespace", "kind", "source", "category")
_TEXTS: Final = "CROSS JOIN texts m ON m.id = r.message CROSS JOIN texts p ON p.id = r.properties"


class Reader:
    """Answers questions about a store; one connection, for one thread at a time.

    With a `scope`, answers hold results and objects of these namespaces only, whatever the question.
    """

    def __init__(self, location: str, columns: SeriesColumns | None = None) -> None:
        """Open the store for reading; readers of one store may share `columns`."""
        self._selector = Selector(location, columns or SeriesColumns())

    @property
    def scope(self) -> Scope:
        """The namespaces that answers are limited to."""
        return self._selector.scope

    @scope.setter
    def scope(self, scope: Scope) -> None:
        self._selector.scope = scope

    def close(self) -> None:
        """Close the connection."""
        self._selector.close()

    def interrupt(self) -> None:
        """End the statement that another thread runs with an error."""
        self._selector.interrupt()

    def check(self) -> None:
        """Read a little of each table that all questions need; raises StoreUnavailableError."""
        self._selector.all("SELECT count(*) FROM (SELECT s.id FROM series s JOIN texts t ON TRUE LIMIT 1) x", ())

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
        columns = ORDERS.get(order)
        if columns is None:
            raise UsageError(f"unknown order `{order}`: expected {', '.join(ORDERS)}")
        chosen = self._selector.choose(selected)
        keys = ", ".join(each.removeprefix("-") for each in columns)
        after = after_cursor(columns, cursor) if cursor else Condition("TRUE")
        where = both(chosen.where, after)
        sorting = ""
        if chosen.total <= MOST_COUNTED and not chosen.is_lower_bound:
            sorting = sort_clause(sorted_by, is_descending=is_descending)
        rows = self._selector.all(
            f"SELECT {RESULT_COLUMNS}, {keys} FROM {chosen.tables(order)} {_TEXTS} WHERE {where.sql} "
            f"ORDER BY {sorting or order_clause(columns)} LIMIT ? OFFSET ?",
            (*where.values, limit + 1, offset),
        )
        items = [read_row(row) for row in rows[:limit]]
        if sorting:
            return Page(items, chosen.total, chosen.is_lower_bound)
        following = encode_cursor(order, rows[limit - 1][-len(columns) :]) if len(rows) > limit else ""
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
        allowed = self._selector.allowed("s")
        row = self._selector.one(
            f"SELECT {RESULT_COLUMNS} FROM {RESULT_TABLES} WHERE r.id = ? AND {allowed.sql}", (number, *allowed.values)
        )
        return None if row is None else read_row(row)

    def exception_uses(self) -> Mapping[tuple[str, str], int]:
        """Return by cluster and name of an exception how many open results it explains."""
        allowed = self._selector.allowed("s")
        rows = self._selector.all(
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
        chosen = self._selector.choose(selected)
        return chosen.total, chosen.is_lower_bound

    def facets(self, selected: Filter, names: Sequence[str] = FACETS) -> JSONObject:
        """Return, for each field, its values with their counts; a field's own patterns do not narrow its values.

        Where more results are selected than are counted, the counts are those of the results that were.
        """
        names = tuple(dict.fromkeys(names))
        if len(names) > _MOST_FACETS:
            raise UsageError(f"more than {_MOST_FACETS} facets: ask for fewer at once")
        wrong = next((name for name in names if name not in SERIES_COLUMNS and not is_key_facet(name)), None)
        if wrong is not None:
            known = ", ".join((*SERIES_COLUMNS, "property.KEY", "label.KEY"))
            raise UsageError(f"unknown facet `{wrong[:100]}`: expected {known}")
        found: dict[str, Mapping[str, int]] = {name: {} for name in names}
        for name in filter(is_key_facet, names):
            found[name] = count_key(self._selector, selected.without(name), name)
        columns = [name for name in names if not is_key_facet(name)]
        own = [name for name in columns if name in selected.fields]
        for fields, chosen in (
            (tuple(name for name in columns if name not in own), selected),
            *(((name,), selected.without(name)) for name in own),
        ):
            for name, counts in self._selector.count_values(chosen, fields).items():
                found[name] = counts
        return {
            name: [
                {"value": value, "count": count}
                for value, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_FACET_VALUES]
            ]
            for name, counts in found.items()
        }

    def facet_keys(self, selected: Filter) -> Sequence[str]:
        """Return the facets `property.KEY` and `label.KEY` that selected results have."""
        return list_keys(self._selector, selected)

    def property_values(self, selected: Filter, key: str) -> list[tuple[str, str]]:
        """Return the values of a property in each namespace, each once; at most 10,000."""
        value, where = self._selector.property_of("p.text", key), self._selector.on_results(selected)
        sql = (
            f"SELECT DISTINCT s.namespace, {value.sql} FROM {RESULT_TABLES} "
            f"WHERE {where.sql} AND {value.sql} IS NOT NULL ORDER BY 1, 2 LIMIT ?"
        )
        values = (*value.values, *where.values, *value.values, _MOST_PROPERTY_VALUES)
        return [(namespace, str(text)) for namespace, text in self._selector.all(sql, values)]

    def summary(self, selected: Filter, by: str = "") -> JSONObject:
        """Return the counts by status, and by the values of a field and status; a field that is empty is `-`."""
        if by and by not in SERIES_COLUMNS:
            raise UsageError(f"unknown field `{by}`: expected {', '.join(SERIES_COLUMNS)}")
        groups: dict[str, dict[str, int]] = {}
        for *values, status, count in self._selector.combinations(
            self._selector.choose(selected), (by, "status") if by else ("status",)
        ):
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
        return list_objects(self._selector, selected, limit=limit, offset=offset)

    def count_resources(self, selected: Filter) -> int:
        """Return how many objects have selected results."""
        return count_objects(self._selector, selected)

    def object_severities(self, selected: Filter, objects: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
        """Return, for each of some objects, how many selected results it has by severity."""
        return object_severities(self._selector, selected, objects)

    def counts(self, selected: Filter, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of fields that occur together, each combination once, with the number of results."""
        found: Counter[tuple[str, ...]] = Counter()
        for *values, count in self._selector.combinations(self._selector.choose(selected), names):
            found[tuple(values)] += count
        return [(*values, count) for values, count in sorted(found.items())]

    def resource(self, number: int) -> JSONObject | None:
        """Return one object with its open results, and those that were resolved."""
        return read_object(self._selector, number)

    def changes(self, selected: Filter, *, limit: int = 100, after: int = 0) -> list[JSONObject]:
        """Return the latest transitions of selected results, from the latest; with `after`, those that follow it."""
        where = self._selector.on_results(selected)
        rows = self._selector.all(
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
        where = self._selector.on_series(selected, "d")
        unknown = {*selected.fields} - {"cluster", "namespace", "policy", "source", "severity", "status"}
        if unknown or not selected.is_about_series:
            raise UsageError("history is kept by cluster, namespace, policy, source, severity and status only")
        rows = self._selector.all(
            "SELECT d.day, d.status, sum(d.open) FROM days d "
            f"WHERE d.day > ? AND d.day < ? AND {where.sql} GROUP BY 1, 2",
            (now // _DAY - days, now // _DAY, *where.values),
        )
        found: dict[int, dict[str, int]] = {}
        for day, status, count in rows:
            found.setdefault(day, dict.fromkeys(STATUSES, 0))[status] = count
        past: list[JSONObject] = [{"day": as_time(day * _DAY)[:10], **counts} for day, counts in sorted(found.items())]
        return [*past, {"day": as_time(now)[:10], **self.summary(selected)["summary"]}]
