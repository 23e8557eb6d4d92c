"""A store in a file, with one report in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyverno.ui.store.reader import Reader
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Writer


@pytest.fixture(params=["sqlite", "postgresql"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of an empty store, in each database."""
    if request.param == "sqlite":
        place = str(tmp_path / "store.db")
    else:
        place = request.getfixturevalue("postgres").new_schema()
    create_tables(place)
    return place


@pytest.fixture
def writer(path: str) -> Iterator[Writer]:
    """The writer of the store."""
    opened = Writer(path, retention_seconds=1000)
    yield opened
    opened.close()


@pytest.fixture
def reader(path: str) -> Iterator[Reader]:
    """A reader of the store."""
    opened = Reader(path)
    yield opened
    opened.close()
