"""Opens stores: a file of SQLite, or a database of PostgreSQL by its URL."""

from __future__ import annotations

from typing import Final

from pyverno.errors import UsageError
from pyverno.ui.store.database import Connection, Role
from pyverno.ui.store.sqlite import connect_file, prepare_file

__all__ = ["connect", "is_url", "prepare"]

_NO_LIBRARY: Final = "a store in PostgreSQL needs the library psycopg: install pyverno with its extra `postgresql`"


def is_url(location: str) -> bool:
    """Return whether the name of a store is the URL of a database rather than a file.

    >>> is_url("postgresql://db/policy"), is_url("results.db")
    (True, False)
    """
    return location.startswith(("postgresql://", "postgres://"))


def connect(location: str, role: Role) -> Connection:
    """Open a store; raises UsageError when it cannot be used, StoreUnavailableError when it does not answer."""
    if is_url(location):
        try:
            from pyverno.ui.store.postgresql import connect_url
        except ImportError as error:
            raise UsageError(_NO_LIBRARY) from error
        return connect_url(location, role)
    return connect_file(location, role)


def prepare(location: str, tables: str, version: int) -> None:
    """Create the tables of a store if it is empty; raises UsageError for a file or database with other contents."""
    if is_url(location):
        try:
            from pyverno.ui.store.postgresql import prepare_url
        except ImportError as error:
            raise UsageError(_NO_LIBRARY) from error
        prepare_url(location, tables, version)
        return
    prepare_file(location, tables, version)
