"""Readers of a store while it is slow, broken, locked or gone."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.pool import ReaderPool
from pyverno.ui.store.reader import Reader
from tests.support.postgres import Postgres
from tests.support.uiserver import serve_ui
from tests.unit.ui.server.test_routes import ask, fill, filled, paths
from tests.unit.ui.store.test_scope import fill as fill_store

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def _endless(reader: Reader) -> None:
    reader._selector.all(ENDLESS, ())


def _many(reader: Reader) -> None:
    while True:
        reader.count(NO_FILTER)


@pytest.mark.parametrize("question", [_endless, _many])
def test_a_question_that_takes_too_long_is_ended(question: Callable[[Reader], None], tmp_path: Path) -> None:
    """One statement and many short ones alike; the reader answers the next question."""
    path = str(tmp_path / "results.db")
    fill_store(path)

    async def play() -> None:
        async with asyncio.timeout(120), ReaderPool(path, 1, seconds=0.5) as readers:
            with pytest.raises(StoreUnavailableError):
                await readers.ask(question)
            assert (4, False) == await readers.ask(lambda reader: reader.count(NO_FILTER))
            assert "" == await readers.problem()

    asyncio.run(play())


def test_questions_do_not_wait_forever_for_a_reader(tmp_path: Path) -> None:
    """All are busy for too long."""
    path = str(tmp_path / "results.db")
    fill_store(path)

    async def play() -> None:
        async with ReaderPool(path, 1, seconds=0.5) as readers:
            first = asyncio.ensure_future(readers.ask(_endless, seconds=3))
            await asyncio.sleep(0)
            with pytest.raises(StoreUnavailableError, match="busy"):
                await readers.ask(lambda reader: reader.count(NO_FILTER))
            with pytest.raises(StoreUnavailableError):
                await first

    asyncio.run(play())


def _corrupt(path: Path) -> None:
    """Let all tables begin at pages that do not exist: "database disk image is malformed"."""
    with sqlite3.connect(path) as connection:
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 1000000 WHERE rootpage > 0")
        connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.close()


def _empty(path: Path) -> None:
    """Take away the tables."""
    with sqlite3.connect(path) as connection:
        connection.executescript("DROP TABLE series; DROP TABLE results;")
    connection.close()


@pytest.mark.parametrize("damage", [_corrupt, _empty], ids=["corrupt", "without tables"])
def test_a_broken_store_is_one_clear_error(damage: Callable[[Path], None], tmp_path: Path) -> None:
    """On every route: 503 without the reason of the database and without paths; readiness says so, health is well."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            await fill(ui)
            asks = [path for path in paths(ui) if path.startswith(("/api/v1/re", "/api/v1/su", "/v2/so", "/metrics"))]
            before = {path: (await ask(ui, filled(path, "1")))[0] for path in asks}
            damage(tmp_path / "results.db")
            broken = 0
            for path in asks:
                status, body = await ask(ui, filled(path, "1"))
                assert status in (503, before[path]), (path, status, body)
                if status == 503:
                    broken += 1
                    assert b'{"error": "the store of results does not answer now: see the log of the server"}' == body
            assert broken > 3
            assert (503, b"the store of results does not answer\n") == await ask(ui, "/ready")
            assert (200, b"ok\n") == await ask(ui, "/healthz")
            assert 200 == (await ask(ui, "/api/v1/config"))[0]

    asyncio.run(play())


def test_a_database_that_goes_away_and_comes_back(postgres: Postgres) -> None:
    """Readers connect again by themselves, and readiness follows."""
    location = postgres.new_schema()
    fill_store(location)

    async def play() -> None:
        async with ReaderPool(location, 2) as readers:
            assert (4, False) == await readers.ask(lambda reader: reader.count(NO_FILTER))
            await asyncio.to_thread(postgres.control, "stop", "-m", "immediate")
            try:
                with pytest.raises(StoreUnavailableError):
                    await readers.ask(lambda reader: reader.count(NO_FILTER))
                assert "the store of results does not answer" == await readers.problem()
            finally:
                await asyncio.to_thread(postgres.control, "start")
            assert "" == await readers.problem()
            assert (4, False) == await readers.ask(lambda reader: reader.count(NO_FILTER))

    asyncio.run(play())


def test_a_store_that_cannot_be_written_is_still_read(tmp_path: Path) -> None:
    """A full or read-only disk, or another process that holds the lock: the pages go on."""

    async def play() -> None:
        async with serve_ui(tmp_path) as ui:
            await fill(ui)
            with sqlite3.connect(tmp_path / "results.db", isolation_level=None) as other:
                other.execute("BEGIN IMMEDIATE")
                assert 200 == (await ask(ui, "/api/v1/results"))[0]
                other.execute("ROLLBACK")
            other.close()
            (tmp_path / "results.db").chmod(0o400)
            assert 200 == (await ask(ui, "/api/v1/summary?search=a"))[0]
            assert (200, b"ok\n") == await ask(ui, "/ready")

    if hasattr(os, "chmod"):
        asyncio.run(play())
