"""Row numbers of series, objects and texts, which results share; new ones are inserted."""

from __future__ import annotations

from typing import Final

from pyverno.report.collected import SEVERITIES, STATUSES, Collected
from pyverno.ui.store.database import Connection
from pyverno.ui.store.schema import SERIES_COLUMNS

__all__ = ["Numbers", "rank_of"]

_SERIES: Final = ", ".join(SERIES_COLUMNS)
_MARKS: Final = ", ".join("?" * len(SERIES_COLUMNS))
_OBJECT: Final = "cluster, api_version, kind, namespace, name"
_LONGEST_FIELD: Final = 253
"""Bytes of the fields of series and objects; names of Kubernetes are not longer."""

_MOST_CACHED: Final = 50_000
_LONGEST_CACHED: Final = 512
"""Characters of the longest text that is cached: with the count, it bounds the bytes."""


def rank_of(status: str, severity: str) -> int:
    """Return the rank of a result, from the worst to the best.

    >>> rank_of("fail", "critical"), rank_of("pass", "")
    (0, 29)
    """
    return STATUSES.index(status) * len(SEVERITIES) + SEVERITIES.index(severity)


def _cut(text: str) -> str:
    """Return a text cut so that the ordered indexes of every database can hold nine such texts in one entry."""
    return text if len(text) <= _LONGEST_FIELD // 4 else text.encode()[:_LONGEST_FIELD].decode("utf-8", "ignore")


class Numbers:
    """Looks numbers up; remembers the latest, and must forget them when rows are removed or rolled back."""

    __slots__ = ("_connection", "_known")

    def __init__(self, connection: Connection) -> None:
        """Take the connection of the writer."""
        self._connection = connection
        self._known: dict[tuple[str, ...], int] = {}

    def forget(self) -> None:
        """Forget every number."""
        self._known.clear()

    def series(self, cluster: str, result: Collected) -> int:
        """Return the number of the series of a result."""
        found, ref = result.finding, result.finding.resource
        key = (
            cluster,
            result.source,
            found.category,
            found.policy,
            found.rule,
            found.severity,
            found.status,
            ref.namespace,
            ref.kind,
        )
        known = self._known.get(key)
        if known is not None:
            return known
        rank = rank_of(found.status, found.severity)
        return self._look_up(
            key,
            f"SELECT id FROM series WHERE ({_SERIES}) = ({_MARKS})",
            f"INSERT INTO series ({_SERIES}, rank) VALUES ({_MARKS}, {rank}) RETURNING id",
            tuple(map(_cut, key)),
        )

    def target(self, cluster: str, result: Collected) -> int:
        """Return the number of the object of a result."""
        ref = result.finding.resource
        key = (cluster, ref.api_version, ref.kind, ref.namespace, ref.name)
        known = self._known.get(key)
        if known is not None:
            return known
        return self._look_up(
            key,
            f"SELECT id FROM objects WHERE ({_OBJECT}) = (?, ?, ?, ?, ?)",
            f"INSERT INTO objects ({_OBJECT}) VALUES (?, ?, ?, ?, ?) RETURNING id",
            tuple(map(_cut, key)),
        )

    def text(self, text: str) -> int:
        """Return the number of a text."""
        key = (text,)
        known = self._known.get(key)
        if known is not None:
            return known
        return self._look_up(
            key,
            "SELECT id FROM texts WHERE text = ?",
            "INSERT INTO texts (text) VALUES (?) RETURNING id",
            key,
            is_cached=len(text) <= _LONGEST_CACHED,
        )

    def _look_up(
        self, key: tuple[str, ...], select: str, insert: str, values: tuple[str, ...], *, is_cached: bool = True
    ) -> int:
        found = self._connection.execute(select, values).fetchone()
        if found is None:
            found = self._connection.execute(insert, values).fetchone()
        number = int(found[0])
        if is_cached:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            self._known[key] = number
        return number
