"""Filters as SQL: conditions with bound parameters. No text of a request ever becomes part of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.report.collected import SEVERITIES, STATUSES
from pyverno.ui.store.database import Condition, Dialect
from pyverno.ui.store.filters import Filter
from pyverno.ui.store.filters import fits as is_selected
from pyverno.ui.store.numbers import rank_of
from pyverno.ui.store.schema import SERIES_COLUMNS
from pyverno.value import dataclass

__all__ = [
    "both",
    "narrowing_statements",
    "object_condition",
    "order_condition",
    "result_condition",
    "series_condition",
    "sort_clause",
]

_OBJECT_COLUMNS: Final = {"name": "name", "apiVersion": "api_version"}

_SORTED: Final = {
    "resource_namespace": "o.namespace",
    "resource_name": "o.name",
    "resource_kind": "o.kind",
    "resource_api_version": "o.api_version",
    "policy": "s.policy",
    "rule": "s.rule",
    "source": "s.source",
    "category": "s.category",
    "message": "m.text",
    "result": "s.status",
    "status": "s.status",
    "severity": "s.severity",
    "created": "r.changed",
}
"""Columns by the names that Policy Reporter's `sortBy` has."""


def series_condition(dialect: Dialect, selected: Filter, table: str = "s") -> Condition:
    """Return the condition on series; all of them are scanned sooner than most are reached by an index."""
    parts = [
        _fits(dialect, dialect.unindexed(f"{table}.{name}"), patterns)
        for name, patterns in selected.fields.items()
        if name in SERIES_COLUMNS
    ]
    for source, kinds in selected.excluded_kinds.items():
        marks = ", ".join("?" * len(kinds))
        parts.append(Condition(f"NOT ({table}.source = ? AND {table}.kind IN ({marks}))", (source, *kinds)))
    return _all(parts)


def order_condition(selected: Filter) -> Condition:
    """Return the condition by which the index of the order begins with the first series (`s`) of some statuses."""
    exact = _exact_statuses(selected)
    if not exact:
        return Condition("TRUE")
    ranks = [rank_of(status, severity) for status in exact for severity in SEVERITIES]
    return Condition("s.rank BETWEEN ? AND ?", (min(ranks), max(ranks)))


def _exact_statuses(selected: Filter) -> Sequence[str]:
    patterns = selected.fields.get("status", ())
    return [status for status in STATUSES if is_selected(patterns, status)] if patterns else ()


def object_condition(dialect: Dialect, selected: Filter) -> Condition:
    """Return the condition on objects (`o`) of a filter about objects alone."""
    columns = {"cluster": "cluster", "kind": "kind", "namespace": "namespace", **_OBJECT_COLUMNS}
    return _all([_fits(dialect, f"o.{columns[name]}", patterns) for name, patterns in selected.fields.items()])


def result_condition(dialect: Dialect, selected: Filter) -> Condition:
    """Return the condition on results (`r`) and their objects (`o`), beside that on series."""
    return _all([part.condition for part in _result_parts(dialect, selected)])


def both(first: Condition, second: Condition) -> Condition:
    """Return the condition that two conditions hold."""
    return _all((first, second))


def sort_clause(names: Sequence[str], *, is_descending: bool) -> str:
    """Return the columns to sort by, with the id as the last; the empty text without a known name.

    >>> sort_clause(["policy", "; DROP TABLE results"], is_descending=True)
    's.policy DESC, r.id DESC'
    """
    columns = [_SORTED[name] for name in names if name in _SORTED]
    way = " DESC" if is_descending else ""
    return ", ".join(f"{column}{way}" for column in (*columns, "r.id")) if columns else ""


def narrowing_statements(dialect: Dialect, selected: Filter) -> Sequence[Condition]:
    """Return statements that give the results (`id`) which one part of the filter selects, by an index."""
    return [part.ids for part in _result_parts(dialect, selected) if part.ids is not None]


@dataclass(frozen=True, slots=True)
class _Part:
    condition: Condition
    ids: Condition | None = None


def _result_parts(dialect: Dialect, selected: Filter) -> list[_Part]:
    parts: list[_Part] = []
    for name, patterns in selected.fields.items():
        column = _OBJECT_COLUMNS.get(name)
        if column is not None:
            fits, own = _fits(dialect, f"o.{column}", patterns), _fits(dialect, f"x.{column}", patterns)
            ids = f"SELECT id FROM results WHERE object IN (SELECT x.id FROM objects x WHERE {own.sql})"
            parts.append(_Part(fits, Condition(ids, own.values)))
    if selected.state == "open":
        parts.append(_Part(Condition("r.resolved IS NULL")))
    if selected.state == "resolved":
        parts.append(
            _Part(Condition("r.resolved IS NOT NULL"), Condition("SELECT id FROM results WHERE resolved IS NOT NULL"))
        )
    if selected.since is not None:
        ids = "SELECT id FROM results WHERE changed >= ? UNION SELECT id FROM results WHERE resolved >= ?"
        since = Condition("coalesce(r.resolved, r.changed) >= ?", (selected.since,))
        parts.append(_Part(since, Condition(ids, (selected.since,) * 2)))
    if selected.until is not None:
        parts.append(_Part(Condition("coalesce(r.resolved, r.changed) <= ?", (selected.until,))))
    for key, patterns in selected.properties.items():
        text = dialect.property_of("p.text", key)
        fits = _fits(dialect, text.sql, patterns, *text.values)
        having = f"(SELECT p.id FROM texts p WHERE {fits.sql})"
        ids = f"SELECT id FROM results WHERE properties IN {having}"
        parts.append(_Part(Condition(f"r.properties IN {having}", fits.values), Condition(ids, fits.values)))
    for key, patterns in selected.labels.items():
        label = dialect.property_of("l.labels", key)
        fits = _fits(dialect, label.sql, patterns, *label.values)
        having = f"(SELECT l.id FROM reports l WHERE {fits.sql})"
        ids = f"SELECT id FROM results WHERE report IN {having}"
        parts.append(_Part(Condition(f"r.report IN {having}", fits.values), Condition(ids, fits.values)))
    if selected.search:
        parts.append(_search(dialect, selected.search))
    return parts


def _search(dialect: Dialect, text: str) -> _Part:
    like = dialect.like
    pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    messages = f"(SELECT t.id FROM texts t WHERE t.text {like} ? ESCAPE '\\')"
    objects = f"(SELECT x.id FROM objects x WHERE x.name {like} ? ESCAPE '\\')"
    series = f"(SELECT y.id FROM series y WHERE y.policy {like} ? ESCAPE '\\' OR y.rule {like} ? ESCAPE '\\')"
    either = f"r.message IN {messages} OR r.object IN {objects} OR r.series IN {series}"
    return _Part(
        Condition(either, (pattern,) * 4),
        Condition(
            f"SELECT id FROM results WHERE message IN {messages} "
            f"UNION SELECT id FROM results WHERE object IN {objects} "
            f"UNION SELECT id FROM results WHERE series IN {series}",
            (pattern,) * 4,
        ),
    )


def _fits(dialect: Dialect, column: str, patterns: Sequence[str], *before: object) -> Condition:
    """Return the condition that a column fits patterns; `before` are values of `?` in the column itself."""
    positive = [pattern for pattern in patterns if not pattern.startswith("!")]
    negative = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    parts: list[Condition] = []
    if positive:
        parts.append(_any([_one(dialect, column, pattern, before) for pattern in positive]))
    parts.extend(
        Condition(f"NOT coalesce({found.sql}, FALSE)", found.values)
        for found in (_one(dialect, column, pattern, before) for pattern in negative)
    )
    return _all(parts)


def _one(dialect: Dialect, column: str, pattern: str, before: tuple[object, ...]) -> Condition:
    if any(each in pattern for each in "*?["):
        return dialect.glob(column, pattern, before)
    return Condition(f"{column} = ?", (*before, pattern))


def _all(parts: Sequence[Condition]) -> Condition:
    return _join(parts, " AND ", "TRUE")


def _any(parts: Sequence[Condition]) -> Condition:
    return _join(parts, " OR ", "FALSE")


def _join(parts: Sequence[Condition], word: str, none: str) -> Condition:
    if not parts:
        return Condition(none)
    text = word.join(f"({part.sql})" for part in parts)
    return Condition(text, tuple(value for part in parts for value in part.values))
