"""The queue of notices, in the file of the store: written in the transaction of a change, emptied by deliveries.

Notices of one delivery get its name before the first attempt and keep it. A delivery that a restart interrupts is
repeated whole under the same name, by which receivers recognize it.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from pyverno.ui.notifications.delivery import Delivery
from pyverno.ui.notifications.notice import CHANGED, OPENED, RESOLVED, Notice, notice_of
from pyverno.ui.notifications.settings import TargetSettings
from pyverno.ui.store.database import Connection, Role
from pyverno.ui.store.opening import connect
from pyverno.ui.store.writer import Change

__all__ = ["MOST_QUEUED", "NoticeRecorder", "Outbox"]

MOST_QUEUED: Final = 10_000
"""The limit of queued notices of one target; further ones are dropped and counted."""

_LONGEST_GROUP: Final = 250

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS notices (
  id INTEGER PRIMARY KEY,
  target TEXT NOT NULL, key TEXT NOT NULL, event TEXT NOT NULL, grouped TEXT NOT NULL, body TEXT NOT NULL,
  due INTEGER NOT NULL,             -- seconds since 1970
  delivery TEXT NOT NULL DEFAULT '', -- its name, once there is one
  attempts INTEGER NOT NULL DEFAULT 0,
  begun INTEGER NOT NULL DEFAULT 0   -- when the first attempt was
);
CREATE INDEX IF NOT EXISTS notices_due ON notices (target, delivery, grouped, id);
CREATE TABLE IF NOT EXISTS notified (target TEXT NOT NULL, cluster TEXT NOT NULL, PRIMARY KEY (target, cluster));
"""


class NoticeRecorder:
    """Queues the changes that targets select; belongs to the writer of the store, and to its thread."""

    def __init__(
        self,
        targets: Sequence[TargetSettings],
        dropped: Callable[[str, int], None] = lambda *_: None,
        *,
        most: int = MOST_QUEUED,
    ) -> None:
        """Take the targets, and the function that counts dropped notices of a target; `most` are queued at once."""
        self._most = most
        self._targets = targets
        self._dropped = dropped

    def record(self, connection: Connection, changes: Iterable[Change]) -> None:
        """Queue changes within the transaction that records them."""
        found = list(changes)
        if not found:
            return
        for target in self._targets:
            chosen = [(change, event) for change in found if (event := _event(target, change))]
            if chosen:
                self._queue(connection, target, chosen)

    def synchronized(self, connection: Connection, cluster: str) -> None:
        """Record that a cluster was read completely: from now on, its changes are new to every target."""
        rows = [(target.name, cluster) for target in self._targets]
        connection.executemany("INSERT INTO notified VALUES (?, ?) ON CONFLICT DO NOTHING", rows)

    def _queue(self, connection: Connection, target: TargetSettings, chosen: Sequence[tuple[Change, str]]) -> None:
        clusters = {
            name for (name,) in connection.execute("SELECT cluster FROM notified WHERE target = ?", (target.name,))
        }
        (queued,) = connection.execute("SELECT count(*) FROM notices WHERE target = ?", (target.name,)).fetchone()
        rows: list[tuple[Any, ...]] = []
        lost = 0
        for change, event in chosen:
            if target.skips_existing and change.cluster not in clusters:
                continue
            notice = notice_of(change, event)
            if event == RESOLVED and self._withdraw(connection, target, notice):
                continue
            if queued + len(rows) >= self._most:
                lost += 1
                continue
            grouped = getattr(notice, target.group_by)[:_LONGEST_GROUP] if target.group_by else ""
            rows.append((target.name, notice.key, event, grouped, notice.encode(), change.at + target.digest))
        connection.executemany(
            "INSERT INTO notices (target, key, event, grouped, body, due) VALUES (?, ?, ?, ?, ?, ?)", rows
        )
        if lost:
            self._dropped(target.name, lost)

    def _withdraw(self, connection: Connection, target: TargetSettings, notice: Notice) -> bool:
        """Withdraw unsent notices of a resolved problem; return whether none was sent."""
        own = (target.name, notice.key)
        kept = connection.execute(
            "SELECT count(*) FROM notices WHERE target = ? AND key = ? AND delivery = '' AND event = ?", (*own, OPENED)
        ).fetchone()
        if not kept[0]:
            return False
        connection.execute("DELETE FROM notices WHERE target = ? AND key = ? AND delivery = ''", own)
        return True


def _event(target: TargetSettings, change: Change) -> str:
    """Return the event that a change is for a target: opened, changed, resolved, or none."""
    admits = target.filter.admits
    was = bool(change.before) and admits(change.result, change.before, change.cluster, change.labels)
    now = bool(change.after) and admits(change.result, change.after, change.cluster, change.labels)
    if now:
        return CHANGED if was else OPENED
    return RESOLVED if was and target.sends_resolved else ""


class Outbox:
    """Takes deliveries out of the queue; its methods belong to one thread at a time."""

    def __init__(self, path: str) -> None:
        """Open the store, and create missing tables."""
        self._connection = connect(path, Role.QUEUE)
        self._connection.create(_TABLES)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The exceptions of a store that cannot be used now."""
        return self._connection.failures

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def forget_others(self, targets: Collection[str]) -> None:
        """Drop the notices of targets that are no longer in the file."""
        for table in ("notices", "notified"):
            known = self._connection.execute(f"SELECT DISTINCT target FROM {table}").fetchall()
            gone = [row for row in known if row[0] not in targets]
            self._connection.executemany(f"DELETE FROM {table} WHERE target = ?", gone)

    def resume(self, now: int) -> None:
        """Make deliveries that a restart interrupted due at once."""
        self._connection.execute("UPDATE notices SET due = ? WHERE delivery <> ''", (now,))

    def take(self, target: TargetSettings, most: int, now: int) -> Delivery | None:
        """Return the delivery that is due first, and count the attempt; None while none is due."""
        with self._connection.transaction():
            name = self._name(target, most, now)
            rows: list[tuple[Any, ...]] = []
            if name:
                self._connection.execute(
                    "UPDATE notices SET attempts = attempts + 1, begun = CASE WHEN begun = 0 THEN ? ELSE begun END "
                    "WHERE target = ? AND delivery = ?",
                    (now, target.name, name),
                )
                rows = self._connection.execute(
                    "SELECT body, attempts, begun FROM notices WHERE target = ? AND delivery = ? ORDER BY id",
                    (target.name, name),
                ).fetchall()
        if not rows:
            return None
        notices = [Notice.decode(body) for body, _, _ in rows]
        return Delivery(name, notices, rows[0][2], rows[0][1], bool(target.digest), target.custom)

    def _name(self, target: TargetSettings, most: int, now: int) -> str:
        """Return the name of the delivery that is due first: one that failed, or one of notices that wait."""
        row = self._connection.execute(
            "SELECT delivery, grouped FROM notices WHERE target = ? AND due <= ? ORDER BY due, id LIMIT 1",
            (target.name, now),
        ).fetchone()
        if row is None or row[0]:
            return str(row[0]) if row else ""
        name = secrets.token_hex(16)
        self._connection.execute(
            "UPDATE notices SET delivery = ? WHERE id IN (SELECT id FROM notices "
            "WHERE target = ? AND delivery = '' AND grouped = ? ORDER BY id LIMIT ?)",
            (name, target.name, row[1], most),
        )
        return name

    def next_due(self, target: str) -> int | None:
        """Return when the next notice of a target is due; None while there is none."""
        (found,) = self._connection.execute("SELECT min(due) FROM notices WHERE target = ?", (target,)).fetchone()
        return None if found is None else int(found)

    def remove(self, target: str, delivery: str) -> None:
        """Forget a delivery: it was sent, or dropped."""
        self._connection.execute("DELETE FROM notices WHERE target = ? AND delivery = ?", (target, delivery))

    def postpone(self, target: str, delivery: str, due: int) -> None:
        """Repeat a delivery later."""
        self._connection.execute(
            "UPDATE notices SET due = ? WHERE target = ? AND delivery = ?", (due, target, delivery)
        )

    def queued(self) -> Counter[str]:
        """Return how many notices wait, by target."""
        return Counter(dict(self._connection.execute("SELECT target, count(*) FROM notices GROUP BY target")))
