"""The journal: what the store holds, in one SQLite file, so that it outlives the process.

A row per object and the newest version are in the file; a write is one transaction, which a killed process cannot
lose once it is recorded. Changes are not kept: a watch from before a restart fails as too old. One process at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kubesandbox.privatefiles import make_private_file
from kubesandbox.storage.store import Change, ChangeKind, Key, Stored
from pyverno.errors import UsageError
from pyverno.kube.json import decode
from pyverno.kube.status import internal_error

__all__ = ["SqliteJournal"]

_FORMAT = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"
_FREE_SHARE = 4
"""The file is written anew at the start when one page in this many is free."""


class SqliteJournal:
    """Records changes in a file; `states` and `revision` are what was there when it was opened."""

    def __init__(self, path: Path) -> None:
        """Open or make the file; raises UsageError when another process has it, or it is a link or no journal."""
        make_private_file(path)
        for beside in (path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm")):
            if beside.exists() or beside.is_symlink():
                make_private_file(beside)
        self._path = path
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=0.5)
        try:
            self._open()
        except sqlite3.Error as error:
            self._connection.close()
            raise UsageError(f"`{path}` cannot be used as data of a sandbox: {error}") from None

    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        # A process that is killed loses nothing that the system has taken; only a crash of the machine could.
        run("PRAGMA synchronous = NORMAL")
        run("BEGIN IMMEDIATE")
        run("COMMIT")
        self._connection.executescript(_TABLES)
        found = self._fact("format")
        if found not in (None, _FORMAT):
            raise sqlite3.DatabaseError(f"it has the format {found} of another version")
        run(_FACT, ("format", _FORMAT))
        self._compact()

    @property
    def revision(self) -> int:
        """The newest version that was recorded, 1 where there is none."""
        return self._fact("revision") or 1

    def states(self) -> Iterator[Stored]:
        """Yield the objects with the versions that they had."""
        rows = self._connection.execute("SELECT resource, namespace, name, revision, body FROM objects")
        for resource, namespace, name, revision, body in rows:
            yield Stored(Key(resource, namespace, name), decode(body), revision)

    def record(self, change: Change) -> None:
        """Keep one change; when this returns, the end of the process cannot take it back.

        Raises StatusError when the file cannot hold it, as on a full disk; then nothing has changed.
        """
        state, run = change.state, self._connection.execute
        try:
            run("BEGIN")
            if change.kind is ChangeKind.DELETED:
                run(_REMOVE, tuple(state.key))
            else:
                run(_PUT, (*state.key, state.revision, state.json))
            run(_FACT, ("revision", change.revision))
            run("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:  # SQLite itself ends it when the disk is full
                run("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise internal_error(f"the object cannot be stored in `{self._path}`: {error}") from None
            raise

    def close(self) -> None:
        """Write everything into the one file, if there is room for it, and let go of it."""
        with suppress(sqlite3.Error):  # without room it stays in the file beside, which the next start reads
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _fact(self, name: str) -> int | None:
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else None

    def _compact(self) -> None:
        free = self._connection.execute("PRAGMA freelist_count").fetchone()[0]
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        if free * _FREE_SHARE > pages:
            self._connection.execute("VACUUM")
