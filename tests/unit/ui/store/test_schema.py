"""Files of the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pyverno.errors import UsageError
from pyverno.ui.store.schema import VERSION, create_tables


def test_tables_are_made_once(tmp_path: Path) -> None:
    """A second start uses the existing tables."""
    path = str(tmp_path / "store.db")
    create_tables(path)
    create_tables(path)
    with closing(sqlite3.connect(path)) as rows:
        version = rows.execute("PRAGMA user_version").fetchone()
    assert (VERSION,) == version


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """Another database, another version, a folder, or no database at all: an error, and not a byte changes."""
    other, newer, text = tmp_path / "other.db", tmp_path / "newer.db", tmp_path / "text"
    for file, version in ((other, 0), (newer, VERSION + 1)):
        connection = sqlite3.connect(file)
        connection.executescript(f"CREATE TABLE precious (x); PRAGMA user_version = {version};")
        connection.close()
    text.write_text("not a database " * 100)
    for file in (other, newer, text, tmp_path):
        with pytest.raises(UsageError):
            create_tables(str(file))
    assert "not a database " * 100 == text.read_text()
    with closing(sqlite3.connect(other)) as rows:
        assert [("precious",)] == rows.execute("SELECT name FROM sqlite_master").fetchall()
