"""Results as the store gives them back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSONObject
from pyverno.report.collected import Collected
from pyverno.report.finding import Finding
from pyverno.value import dataclass

__all__ = ["RESULT_COLUMNS", "RESULT_TABLES", "StoredResult", "as_time", "read_row"]

RESULT_COLUMNS: Final = (
    "r.id, s.cluster, s.source, s.category, s.policy, s.rule, s.severity, s.status, "
    "o.api_version, o.kind, o.namespace, o.name, m.text, p.text, r.first_seen, r.changed, r.resolved, o.id"
)
RESULT_TABLES: Final = (
    "results r JOIN series s ON s.id = r.series JOIN objects o ON o.id = r.object "
    "JOIN texts m ON m.id = r.message JOIN texts p ON p.id = r.properties"
)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result with its history; times are seconds since 1970, `resolved` is None while it is in a report."""

    id: int
    object_id: int
    cluster: str
    collected: Collected
    first_seen: int
    changed: int
    resolved: int | None

    def to_json(self) -> JSONObject:
        """Return the result as the API writes it; empty parts are left out."""
        item = {**self.collected.to_json(), "id": self.id, "resourceId": self.object_id, "cluster": self.cluster}
        item["source"] = self.collected.source
        item["firstSeen"], item["lastChange"] = as_time(self.first_seen), as_time(self.changed)
        item.pop("timestamp", None)
        if self.resolved is not None:
            item["resolved"] = as_time(self.resolved)
        return {key: value for key, value in item.items() if value != ""}


def as_time(seconds: int) -> str:
    """Return a time as RFC 3339.

    >>> as_time(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_row(row: Sequence[Any]) -> StoredResult:
    """Read a row that begins with RESULT_COLUMNS."""
    number, cluster, source, category, policy, rule, severity, status, api_version, kind, namespace, name = row[:12]
    message, properties, first_seen, changed, resolved, object_id = row[12:18]
    found = Finding(
        policy=policy,
        rule=rule,
        resource=ResourceRef(api_version, kind, namespace, name),
        status=status,
        message=message,
        severity=severity,
        category=category,
        properties=orjson.loads(properties) if properties else {},
    )
    return StoredResult(number, object_id, cluster, Collected(found, source, changed), first_seen, changed, resolved)
