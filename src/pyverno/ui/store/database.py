"""The databases that hold a store: a file of SQLite, or a database of PostgreSQL named by its URL.

Statements are written once, in the SQL that both read, with `?` for values; what differs is in a `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, Protocol

from pyverno.errors import HostError
from pyverno.value import dataclass

__all__ = [
    "Condition",
    "Connection",
    "Dialect",
    "Role",
    "Rows",
    "StoreUnavailableError",
]


class StoreUnavailableError(HostError):
    """The database of the store does not answer, or cannot take a change now."""

    code = "store-unavailable"


class Role(StrEnum):
    """The purpose of a connection; a writer's is never replaced silently, since its lock ends with it."""

    READER = "reader"
    WRITER = "writer"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a statement, and the values of its `?` in order."""

    sql: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between the SQL of databases.

    `glob` makes a condition of a column and a pattern (`*`, `?`, `[x]`), `like` is the operator that ignores case,
    `property_of` makes the text at a key of a column that may hold a JSON object, with the value for its `?`, and
    `among` makes the condition that a column is one of many numbers. `unindexed` keeps the planner from
    reaching a column by an index.
    """

    glob: Callable[[str, str, tuple[object, ...]], Condition]
    like: str
    property_of: Callable[[str, str], Condition]
    among: Callable[[str, Sequence[int]], Condition]
    unindexed: Callable[[str], str]


class Rows(Protocol):
    """The rows that a statement gives."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to the database of a store, for one thread at a time."""

    @property
    def dialect(self) -> Dialect:
        """The dialect of statements."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The exceptions of statements that cannot be answered."""

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run a statement."""

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> object:
        """Run a statement for each row of values."""

    def transaction(self) -> AbstractContextManager[None]:
        """Commit what is written inside; nothing at all after an error."""

    def create(self, tables: str) -> None:
        """Run the statements that make tables, where there are none."""

    def lead(self) -> bool:
        """Become the one writer; False while another process is. Raises StoreUnavailableError."""

    def check(self) -> None:
        """Raise an exception of `failures` when this connection, and with it the lock of a writer, is lost."""

    def announce(self, counts: Mapping[str, int]) -> bool:
        """Let every server with this store know how many results got which status; False where there is one only."""

    def interrupt(self) -> None:
        """End the statement that another thread runs with an exception of `failures`, where it has no time limit."""

    def close(self) -> None:
        """Close the connection."""
