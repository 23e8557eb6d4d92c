"""Objects with their results: lists, counts, and one object with its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyverno.kube.json import JSONObject
from pyverno.report.collected import STATUSES
from pyverno.ui.store.filters import Filter
from pyverno.ui.store.rows import RESULT_COLUMNS, RESULT_TABLES, read_row
from pyverno.ui.store.selection import BY_RESULT, Selector

__all__ = ["count_objects", "list_objects", "object_severities", "read_object"]

_MOST_RESULTS: Final = 1000
_COLUMNS: Final = "o.id, o.cluster, o.api_version, o.kind, o.namespace, o.name"
_HAS_RESULTS: Final = "o.fail + o.error + o.warn + o.skip + o.pass > 0"


def list_objects(selector: Selector, selected: Filter, *, limit: int, offset: int) -> JSONObject:
    """Return objects with their counts by status, those with most problems first."""
    if selected.is_about_objects:
        where = selector.on_objects(selected)
        counts = ", ".join(f"o.{status}" for status in STATUSES)
        sql = (
            f"SELECT {_COLUMNS}, {counts} FROM objects o WHERE {where.sql} AND {_HAS_RESULTS} "
            "ORDER BY o.fail DESC, o.error DESC, o.warn DESC, o.namespace, o.kind, o.name, o.id LIMIT ? OFFSET ?"
        )
    else:
        chosen = selector.choose(selected)
        where = chosen.where
        counts = ", ".join(f"count(*) FILTER (WHERE s.status = '{status}')" for status in STATUSES)
        sql = (
            f"SELECT {_COLUMNS}, {counts} FROM {chosen.tables('')} WHERE {where.sql} GROUP BY o.id "
            "ORDER BY 7 DESC, 8 DESC, 9 DESC, 5, 4, 6, 1 LIMIT ? OFFSET ?"
        )
    rows = selector.all(sql, (*where.values, limit + 1, offset))
    return {"items": [_object(row) for row in rows[:limit]], "next": offset + limit if len(rows) > limit else None}


def count_objects(selector: Selector, selected: Filter) -> int:
    """Return how many objects have selected results."""
    if selected.is_about_objects:
        where = selector.on_objects(selected)
        sql = f"SELECT count(*) FROM objects o WHERE {where.sql} AND {_HAS_RESULTS}"
    else:
        chosen = selector.choose(selected)
        where = chosen.where
        sql = f"SELECT count(DISTINCT r.object) FROM {chosen.tables('')} WHERE {where.sql}"
    ((count,),) = selector.all(sql, where.values)
    return int(count)


def object_severities(selector: Selector, selected: Filter, objects: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
    """Return, for each of some objects, how many selected results it has by severity."""
    where = selector.on_results(selected)
    marks = ", ".join("?" * len(objects))
    found: dict[int, dict[str, int]] = {number: {} for number in objects}
    for number, severity, count in selector.all(
        f"SELECT r.object, s.severity, count(*) FROM {BY_RESULT} WHERE r.object IN ({marks}) AND {where.sql} "
        "GROUP BY 1, 2",
        (*objects, *where.values),
    ):
        found[number][severity] = count
    return found


def read_object(selector: Selector, number: int) -> JSONObject | None:
    """Return one object with its open results, and those that were resolved."""
    allowed = selector.allowed("o")
    row = selector.one(f"SELECT {_COLUMNS} FROM objects o WHERE o.id = ? AND {allowed.sql}", (number, *allowed.values))
    if row is None:
        return None
    rows = selector.all(
        f"SELECT {RESULT_COLUMNS} FROM {RESULT_TABLES} WHERE r.object = ? "
        "ORDER BY r.resolved IS NOT NULL, s.rank, s.policy, s.rule LIMIT ?",
        (number, _MOST_RESULTS),
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
