"""PostgreSQL shared by several servers: one writer, notifications, lost connections."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest

from pyverno.errors import UsageError
from pyverno.ui.leading import follow_announcements, lead
from pyverno.ui.live import LiveUpdates
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.filters import NO_FILTER
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Writer
from tests.support.postgres import Postgres
from tests.unit.ui.store.samples import report, result


@pytest.fixture
def url(postgres: Postgres) -> str:
    """The URL of an empty store."""
    found = postgres.new_schema()
    create_tables(found)
    return found


def end_connections(url: str, words: str) -> None:
    """End the connections of the store whose last statement has these words."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()",
            (f"%{words}%",),
        )


def end_writer(url: str) -> None:
    """End the connection that holds the lock of the one writer, whatever its last statement was."""
    with psycopg.connect(url, autocommit=True) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND objid::bigint = hashtext(current_schema())::bigint & 4294967295"
        )
        assert [(True,)] == ended.fetchall()


def test_tables_of_something_else_are_left_alone(postgres: Postgres) -> None:
    """Neither other tables nor a store of another version is used; the error shows no password."""
    other = postgres.new_schema()
    with psycopg.connect(other, autocommit=True) as connection:
        connection.execute("CREATE TABLE precious (x int)")
    with pytest.raises(UsageError, match="tables of something else"):
        create_tables(other)
    newer = postgres.new_schema()
    create_tables(newer)
    create_tables(newer)
    with psycopg.connect(newer, autocommit=True) as connection:
        connection.execute("UPDATE pyverno_store SET version = 99")
    with pytest.raises(UsageError, match="version 99"):
        create_tables(newer)
    with pytest.raises(StoreUnavailableError) as caught:
        create_tables("postgresql://u:hidden@127.0.0.1:1/db")
    assert "hidden" not in str(caught.value)
    assert "`127.0.0.1:1/db` cannot be reached" in str(caught.value)


def test_one_server_writes_until_it_is_gone(url: str) -> None:
    """The next one takes over, and finds the results with their history."""
    first, second = Writer(url), Writer(url)
    assert [True, False] == [first.lead(), second.lead()]
    first.write([report(result())], 10)
    first.close()
    end_of_wait = time.monotonic() + 60
    while not second.lead():
        # the server ends a session after its connection
        assert time.monotonic() < end_of_wait
    assert [] == second.write([report(result())], 20)
    reader = Reader(url)
    assert [10] == [each.first_seen for each in reader.results(NO_FILTER).items]
    second.close()
    reader.close()


def test_readers_survive_a_lost_connection(url: str) -> None:
    """The next query opens a new connection."""
    writer, reader = Writer(url), Reader(url)
    writer.write([report(result())], 10)
    assert 1 == reader.count(NO_FILTER)[0]
    end_connections(url, "FROM series s WHERE")
    assert 1 == reader.count(NO_FILTER)[0]
    writer.close()
    reader.close()


def test_work_begins_anew_when_the_writer_was_lost(url: str) -> None:
    """The repeated work uses another connection."""

    async def play() -> list[int]:
        writer, begun, done = Writer(url), [], asyncio.Event()

        async def work() -> None:
            begun.append(len(begun))
            await asyncio.to_thread(writer.write, [report(result())], 10)
            if len(begun) == 1:
                end_writer(url)
            else:
                done.set()
            await asyncio.Event().wait()

        leading = asyncio.create_task(lead(writer, work, pause=0.05))
        async with asyncio.timeout(60):
            await done.wait()
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        writer.close()
        return begun

    assert [0, 1] == asyncio.run(play())


def test_every_server_learns_what_changed(url: str) -> None:
    """Pages of a server that does not write are refreshed, too."""

    async def play() -> object:
        writer, live = Writer(url), LiveUpdates()
        async with live.listen() as messages:
            following = asyncio.create_task(follow_announcements(url, live))
            changes = writer.write([report(result())], 10)
            async with asyncio.timeout(60):
                while messages.empty():
                    assert writer.announce(changes)
                    await asyncio.sleep(0.05)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            writer.close()
            return messages.get_nowait()["changes"]

    assert {"fail": 1} == asyncio.run(play())
