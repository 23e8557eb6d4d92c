"""The one server that fills a store: what its background work runs into does not end the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pyverno.errors import HostError
from pyverno.ui.leading import Leading, lead
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.schema import create_tables
from pyverno.ui.store.writer import Writer


def play(folder: Path, *faults: BaseException) -> int:
    """Lead with work that raises one after the other, until it holds; return how often it began."""
    path = str(folder / "results.db")
    create_tables(path)
    begun = 0

    async def run() -> None:
        left, holds = list(faults), asyncio.Event()

        async def work() -> None:
            nonlocal begun
            begun += 1
            if left:
                raise left.pop(0)
            holds.set()
            await asyncio.Event().wait()

        writer = Writer(path)
        leading = asyncio.ensure_future(lead(writer, work, pause=0.01))
        held = asyncio.ensure_future(holds.wait())
        try:
            async with asyncio.timeout(60):
                await asyncio.wait((leading, held), return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                leading.result()
        finally:
            leading.cancel()
            held.cancel()
            await asyncio.gather(leading, held, return_exceptions=True)
            writer.close()

    asyncio.run(run())
    return begun


@pytest.mark.parametrize(
    "bug",
    [ValueError("s3cret"), KeyError("x"), RecursionError(), ExceptionGroup("tasks", [TypeError("x"), OSError("y")])],
    ids=["a value", "a key", "depth", "several"],
)
def test_a_bug_of_background_work_starts_it_again(bug: Exception, tmp_path: Path) -> None:
    """An unexpected report must not end the server for all users."""
    assert 3 == play(tmp_path, bug, bug)


def test_an_error_of_the_settings_ends_the_server(tmp_path: Path) -> None:
    """The twin: what operators have to see is not tried again without a word."""
    with pytest.raises(ExceptionGroup) as caught:
        play(tmp_path, HostError("the cluster refuses"))
    assert caught.group_contains(HostError)


def test_a_cluster_that_is_away_later_is_an_outage(tmp_path: Path) -> None:
    """Work that starts again, because of its store for example, must not end the pages by what happens meanwhile."""
    path = str(tmp_path / "results.db")
    create_tables(path)
    problems: list[tuple[str, ...]] = []

    async def run() -> None:
        leading, holds = Leading(), asyncio.Event()

        async def work() -> None:
            problems.append(leading.problems())
            if len(problems) == 1:
                while not leading.has_worked:
                    await asyncio.sleep(0.01)
            if len(problems) < 3:
                raise HostError("the cluster is away")
            holds.set()
            await asyncio.Event().wait()

        writer = Writer(path)
        running = asyncio.ensure_future(lead(writer, work, pause=0.01, leading=leading))
        try:
            async with asyncio.timeout(60):
                await holds.wait()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            writer.close()

    asyncio.run(run())
    assert [(), ("a cluster does not answer",), ("a cluster does not answer",)] == problems


@pytest.mark.parametrize("fault", [StoreUnavailableError("/var/lib/results.db is locked"), ValueError("s3cret")])
def test_work_that_stands_still_is_a_problem_until_it_goes_on(fault: Exception, tmp_path: Path) -> None:
    """Results may be out of date meanwhile; the reason names no file and no value."""
    path = str(tmp_path / "results.db")
    create_tables(path)
    seen: list[tuple[str, ...]] = []

    async def run() -> None:
        leading, holds = Leading(), asyncio.Event()

        async def work() -> None:
            seen.append(leading.problems())
            if len(seen) < 3:
                raise fault
            await holds.wait()

        writer = Writer(path)
        running = asyncio.ensure_future(lead(writer, work, pause=0.01, leading=leading))
        try:
            async with asyncio.timeout(60):
                while len(seen) < 3 or leading.problem:
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            writer.close()

    asyncio.run(run())
    assert () == seen[0]
    assert seen[1] == seen[2] != ()
    assert "s3cret" not in seen[1][0]
    assert "/var" not in seen[1][0]
