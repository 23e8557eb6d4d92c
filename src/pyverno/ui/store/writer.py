"""Writes reports into the store: new, changed and resolved results, one transaction for each batch.

An unchanged report costs one comparison of its digest. Results keep their row while they last, so that
`first_seen` survives restarts of the server and of the controllers that write reports.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import orjson

from pyverno.kube.json import JSONObject
from pyverno.report.collected import STATUSES, Collected, read_report
from pyverno.ui.store.database import Connection, Role
from pyverno.ui.store.numbers import Numbers
from pyverno.ui.store.opening import connect
from pyverno.ui.store.rows import RESULT_COLUMNS, RESULT_TABLES, StoredResult, read_row
from pyverno.value import dataclass, field

__all__ = ["Change", "ChangeRecorder", "Report", "Writer", "report_of"]

_DAY: Final = 86_400
_HASH: Final = 16
_RESOLVED: Final = ""
_MOST_MARKS: Final = 500
_ROW: Final = (
    "SELECT r.id, r.identity, r.series, r.message, r.properties, r.report, r.object, r.resolved, s.status "
    "FROM results r JOIN series s ON s.id = r.series "
)


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one report object; `name` is its kind, namespace and name, unique in its cluster."""

    cluster: str
    name: str
    results: Sequence[Collected]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """A result that appeared, changed its status, or was resolved; `before` or `after` is empty where there is none.

    `labels` are those of its report.
    """

    result: Collected
    cluster: str
    before: str
    after: str
    at: int
    labels: Mapping[str, str] = field(default_factory=dict)


class ChangeRecorder(Protocol):
    """Writes changes elsewhere in the same file, in the transaction that makes them."""

    def record(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Take the changes of one transaction."""

    def synchronized(self, connection: Connection, cluster: str) -> None:
        """Take note that every report of a cluster was read."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """One transaction: its time, and by how much the counts of series and of objects (by status) change."""

    now: int
    series: Counter[int] = field(default_factory=Counter)
    objects: Counter[tuple[int, str]] = field(default_factory=Counter)

    def count(self, series: int, target: int, status: str, change: int) -> None:
        """Count one result more or less."""
        self.series[series] += change
        self.objects[target, status] += change


def report_of(cluster: str, body: JSONObject) -> Report:
    """Return a report object as the store takes it."""
    metadata = body.get("metadata") or {}
    name = f"{body.get('kind', '')}/{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if isinstance(text, str)}
    return Report(cluster, name, tuple(read_report(body)), labels)


class Writer:
    """The one writer of a store; its methods belong to one thread at a time."""

    def __init__(
        self, path: str, *, retention_seconds: int = 90 * _DAY, recorder: ChangeRecorder | None = None
    ) -> None:
        """Open the store, whose tables must exist; resolved results are kept for `retention_seconds`.

        A `recorder` takes every change in the transaction that makes it.
        """
        self._connection = connect(path, Role.WRITER)
        self._recorder = recorder
        self._retention = retention_seconds
        self._numbers = Numbers(self._connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The exceptions of a store that cannot be written now."""
        return self._connection.failures

    def lead(self) -> bool:
        """Become the one writer of the store; False while another process writes. Raises StoreUnavailableError."""
        self._numbers.forget()
        return self._connection.lead()

    def check(self) -> None:
        """Raise an exception of `failures` when this is no longer the one writer."""
        self._connection.check()

    def announce(self, changes: Sequence[Change]) -> bool:
        """Announce a change to every server with this store; False where this server is the only one."""
        counts = Counter(change.after or "resolved" for change in changes)
        return bool(counts) and self._connection.announce(counts)

    def write(self, reports: Iterable[Report], now: int) -> list[Change]:
        """Take reports as they are now; results that a report no longer has are resolved. Returns what changed."""
        changes: list[Change] = []
        with self._transaction(now) as batch:
            for report in reports:
                changes += self._write_report(report, batch)
            self._record_elsewhere(changes)
        return changes

    def remove(self, cluster: str, names: Iterable[str], now: int) -> list[Change]:
        """Resolve the results of reports that are deleted."""
        changes: list[Change] = []
        with self._transaction(now) as batch:
            for name in names:
                found = self._connection.execute(
                    "SELECT id FROM reports WHERE cluster = ? AND name = ?", (cluster, name)
                ).fetchone()
                if found is not None:
                    changes += self._resolve(self._open_of(found[0]), batch)
                    self._connection.execute("DELETE FROM reports WHERE id = ?", found)
            self._record_elsewhere(changes)
        return changes

    def keep_only(self, cluster: str, names: Collection[str], now: int) -> list[Change]:
        """Resolve the results of a cluster's reports that are not among `names`, a complete list."""
        known = self._connection.execute("SELECT name FROM reports WHERE cluster = ?", (cluster,)).fetchall()
        changes = self.remove(cluster, [name for (name,) in known if name not in names], now)
        if self._recorder is not None:
            with self._transaction(now):
                self._recorder.synchronized(self._connection, cluster)
        return changes

    def end_day(self, now: int) -> None:
        """Record today's counts, and delete rows older than the retention period."""
        keep = now - self._retention
        with self._transaction(now):
            self._connection.execute("DELETE FROM days WHERE day = ? OR day < ?", (now // _DAY, keep // _DAY))
            self._connection.execute(
                "INSERT INTO days SELECT ?, cluster, namespace, policy, source, severity, status, sum(open) "
                "FROM series WHERE open > 0 GROUP BY cluster, namespace, policy, source, severity, status",
                (now // _DAY,),
            )
            self._connection.execute("DELETE FROM changes WHERE at < ?", (keep,))
            self._connection.execute("DELETE FROM results WHERE resolved < ?", (keep,))
            self._connection.execute(
                "DELETE FROM series WHERE open = 0 AND id NOT IN (SELECT series FROM results) "
                "AND id < (SELECT max(id) FROM series)"  # readers rely on numbers that are never reused
            )
            self._connection.execute("DELETE FROM objects WHERE id NOT IN (SELECT object FROM results)")
            self._connection.execute(
                "DELETE FROM texts WHERE id NOT IN (SELECT message FROM results UNION SELECT properties FROM results)"
            )
        self._numbers.forget()

    # ------------------------------------------------------------------------------------------------------- one report

    def _write_report(self, report: Report, batch: _Batch) -> list[Change]:
        digest = _digest(report)
        known = self._connection.execute(
            "SELECT id, digest FROM reports WHERE cluster = ? AND name = ?", (report.cluster, report.name)
        ).fetchone()
        if known is not None and known[1] == digest:
            return []
        row = (report.cluster, report.name, digest, orjson.dumps(dict(report.labels)).decode())
        (number,) = self._connection.execute(
            "INSERT INTO reports (cluster, name, digest, labels) VALUES (?, ?, ?, ?) ON CONFLICT (cluster, name) "
            "DO UPDATE SET digest = excluded.digest, labels = excluded.labels RETURNING id",
            row,
        ).fetchone()
        left: dict[bytes, tuple[Any, ...]] = {}
        if known is not None:
            left = {each[1]: each for each in self._open_of(number)}
        results = dict(_identify(report))
        elsewhere = self._with_identities([identity for identity in results if identity not in left])
        fresh: list[tuple[Any, ...]] = []
        changes: list[Change] = []
        for identity, result in results.items():
            known_row = left.pop(identity, None) or elsewhere.get(identity)
            texts = (self._numbers.text(result.finding.message), self._numbers.text(_properties(result)), number)
            series = self._numbers.series(report.cluster, result)
            if known_row is None:
                target = self._numbers.target(report.cluster, result)
                fresh.append((identity, series, target, *texts, batch.now, batch.now))
                batch.count(series, target, result.finding.status, 1)
                changes.append(Change(result, report.cluster, "", result.finding.status, batch.now, report.labels))
            else:
                changes += self._update(report, result, known_row, (series, *texts), batch)
        self._connection.executemany(
            "INSERT INTO results (identity, series, object, message, properties, report, first_seen, changed) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            fresh,
        )
        return changes + self._resolve(left.values(), batch)

    def _update(
        self, report: Report, result: Collected, row: tuple[Any, ...], new: tuple[int, int, int, int], batch: _Batch
    ) -> list[Change]:
        """Write what is new of a known result: series, message, properties and report; a resolved one is reopened."""
        number, _, *old, target, resolved, old_status = row
        if tuple(old) == new and resolved is None:
            return []
        is_again = resolved is not None
        self._connection.execute(
            "UPDATE results SET series = ?, message = ?, properties = ?, report = ?, resolved = NULL, changed = ?, "
            "first_seen = CASE WHEN ? THEN ? ELSE first_seen END WHERE id = ?",
            (*new, batch.now, is_again, batch.now, number),
        )
        batch.count(new[0], target, result.finding.status, 1)
        if not is_again:
            batch.count(old[0], target, old_status, -1)
        before, after = "" if is_again else old_status, result.finding.status
        if before == after:
            return []
        self._record(number, before, after, batch)
        return [Change(result, report.cluster, before, after, batch.now, report.labels)]

    def _resolve(self, rows: Iterable[tuple[Any, ...]], batch: _Batch) -> list[Change]:
        changes: list[Change] = []
        labels: dict[int, Mapping[str, str]] = {}
        for number, _, series, _, _, report, target, _, status in rows:
            self._connection.execute("UPDATE results SET resolved = ? WHERE id = ?", (batch.now, number))
            self._record(number, status, _RESOLVED, batch)
            batch.count(series, target, status, -1)
            found = self._read(number)
            own = labels.get(report)
            if own is None:
                own = labels[report] = self._labels(report)
            changes.append(Change(found.collected, found.cluster, status, _RESOLVED, batch.now, own))
        return changes

    def _labels(self, report: int) -> Mapping[str, str]:
        row = self._connection.execute("SELECT labels FROM reports WHERE id = ?", (report,)).fetchone()
        found: dict[str, str] = orjson.loads(row[0]) if row else {}
        return found

    def _record_elsewhere(self, changes: Sequence[Change]) -> None:
        if self._recorder is not None and changes:
            self._recorder.record(self._connection, changes)

    def _record(self, number: int, before: str, after: str, batch: _Batch) -> None:
        self._connection.execute(
            "INSERT INTO changes (at, result, before, after) VALUES (?, ?, ?, ?)", (batch.now, number, before, after)
        )

    def _with_identities(self, identities: Sequence[bytes]) -> dict[bytes, tuple[Any, ...]]:
        """Return rows, open or resolved, of other reports or of earlier times, by identity."""
        found: dict[bytes, tuple[Any, ...]] = {}
        for start in range(0, len(identities), _MOST_MARKS):
            part = identities[start : start + _MOST_MARKS]
            marks = ", ".join("?" * len(part))
            for row in self._connection.execute(f"{_ROW} WHERE r.identity IN ({marks})", part):
                found[row[1]] = row
        return found

    def _open_of(self, report: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(_ROW + "WHERE r.report = ? AND r.resolved IS NULL", (report,)).fetchall()

    def _read(self, number: int) -> StoredResult:
        sql = f"SELECT {RESULT_COLUMNS} FROM {RESULT_TABLES} WHERE r.id = ?"
        return read_row(self._connection.execute(sql, (number,)).fetchone())

    @contextmanager
    def _transaction(self, now: int) -> Iterator[_Batch]:
        """Commit everything that is written inside, and the counts of series with it; nothing at all after an error."""
        batch = _Batch(now)
        try:
            with self._connection.transaction():
                yield batch
                self._add_up(batch)
        except BaseException:
            self._numbers.forget()
            raise

    def _add_up(self, batch: _Batch) -> None:
        self._connection.executemany(
            "UPDATE series SET open = open + ? WHERE id = ?",
            [(change, number) for number, change in batch.series.items() if change],
        )
        for status in STATUSES:
            self._connection.executemany(
                f"UPDATE objects SET {status} = {status} + ? WHERE id = ?",
                [(change, number) for (number, own), change in batch.objects.items() if change and own == status],
            )


def _identify(report: Report) -> Iterator[tuple[bytes, Collected]]:
    """Yield the results with their identities; equal ones are numbered."""
    seen: Counter[bytes] = Counter()
    for result in report.results:
        found, ref = result.finding, result.finding.resource
        own = found.properties.get("resultID", "")
        parts = (
            report.cluster,
            result.source,
            found.policy,
            found.rule,
            ref.api_version,
            ref.kind,
            ref.namespace,
            ref.name,
        )
        key = hashlib.blake2b("\0".join((*parts, own)).encode("utf-8", "replace"), digest_size=_HASH)
        plain = key.digest()
        seen[plain] += 1
        if seen[plain] > 1:
            key.update(str(seen[plain]).encode())
        yield key.digest(), result


def _digest(report: Report) -> bytes:
    digest = hashlib.blake2b(digest_size=_HASH)
    for key in sorted(report.labels):
        digest.update(f"{key}={report.labels[key]}\0".encode("utf-8", "replace"))
    for result in report.results:
        found = result.finding
        digest.update(
            orjson.dumps([*result.key, found.message, found.severity, found.category, dict(found.properties)])
        )
    return digest.digest()


def _properties(result: Collected) -> str:
    found = result.finding.properties
    return orjson.dumps(dict(found), option=orjson.OPT_SORT_KEYS).decode() if found else ""
