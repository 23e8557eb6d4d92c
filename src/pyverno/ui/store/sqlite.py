"""Stores in files of SQLite; readers see the last committed state while the one writer writes (WAL)."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import orjson

from pyverno.errors import UsageError
from pyverno.ui.store.database import Condition, Dialect, Role

# trust rows: own-file, store

__all__ = ["SqliteConnection", "connect_file", "prepare_file"]

_CACHE_KIB: Final = 32 * 1024
_BUSY_SECONDS: Final = 10.0


def _glob(column: str, pattern: str, before: tuple[object, ...]) -> Condition:
    return Condition(f"{column} GLOB ?", (*before, pattern))


def _property_of(column: str, key: str) -> Condition:
    # quotation marks cannot be written in a path, and no key has them
    path = '$."' + key.replace('"', "") + '"'
    return Condition(f"json_extract(CASE WHEN json_valid({column}) THEN {column} ELSE '{{}}' END, ?)", (path,))


def _among(column: str, numbers: Sequence[int]) -> Condition:
    return Condition(f"{column} IN (SELECT value FROM json_each(?))", (orjson.dumps([*numbers]).decode(),))


_DIALECT: Final = Dialect(_glob, "LIKE", _property_of, _among, "+{}".format)


class SqliteConnection(sqlite3.Connection):
    """A connection to a file."""

    dialect = _DIALECT
    failures: tuple[type[Exception], ...] = (sqlite3.Error,)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is written inside; nothing at all after an error."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def lead(self) -> bool:
        """Return True: a file belongs to one server."""
        return True

    def create(self, tables: str) -> None:
        """Run the statements that make tables, where there are none."""
        self.executescript(tables)

    def check(self) -> None:
        """Do nothing: a file is not lost."""

    def announce(self, counts: Mapping[str, int]) -> bool:
        """Return False: no other server reads the file."""
        return False


def connect_file(path: str, role: Role) -> SqliteConnection:
    """Open a file, closed to other users; raises UsageError when it cannot be opened or is no database."""
    try:
        _close_to_others(path)
        connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None, factory=SqliteConnection
        )
        with ExitStack() as after_an_error:
            after_an_error.callback(connection.close)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute("PRAGMA temp_store = MEMORY")
            if role is Role.READER:
                connection.execute("PRAGMA query_only = ON")
            after_an_error.pop_all()
    except (sqlite3.Error, OSError) as error:
        why = (error.strerror or "").lower() if isinstance(error, OSError) else error
        raise UsageError(f"cannot use `{path}` as the store of results: {why}") from error
    return connection


def _close_to_others(path: str) -> None:
    """Make the file with mode 0600, or take what all users of the machine may do from one that is there.

    It holds the results of all namespaces and the queue of notifications, whoever may see them on the pages. SQLite
    gives its files beside it the same mode.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # by name: to close another descriptor of the file would give up the locks that SQLite holds in this process
        mode = stat.S_IMODE(Path(path).stat().st_mode)
        if mode & stat.S_IRWXO:
            with suppress(PermissionError):  # the file of another user
                Path(path).chmod(mode & ~stat.S_IRWXO)


def prepare_file(path: str, tables: str, version: int) -> None:
    """Make the tables where there are none; raises UsageError for a file that holds anything else."""
    with closing(connect_file(path, Role.WRITER)) as connection:
        try:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found == version:
                return
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                what = f"a store of version {found}, not {version}" if found else "a database of something else"
                raise UsageError(f"`{path}` is {what}: give another file, or remove this one together with its history")
            connection.executescript(f"BEGIN; {tables} PRAGMA user_version = {version}; COMMIT;")
        except sqlite3.Error as error:
            raise UsageError(f"cannot use `{path}` as the store of results: {error}") from error
