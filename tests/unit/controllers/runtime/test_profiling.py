"""The profiling port: loopback only, standard formats, one profile at a time."""

from __future__ import annotations

import asyncio
import marshal
import tracemalloc
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from pyverno.controllers.runtime.profiling import ProfilingPort


def ask(scene: Callable[[aiohttp.ClientSession, str], Awaitable[None]], address: str = "") -> None:
    """Run a scene with a port of its own."""

    async def run() -> None:
        async with ProfilingPort(address, 0) as profiling, aiohttp.ClientSession() as session:
            await scene(session, f"http://127.0.0.1:{profiling.port}")

    asyncio.run(run())


async def text(session: aiohttp.ClientSession, url: str, status: int = 200) -> str:
    """Return the text of a response."""
    async with session.get(url) as reply:
        assert status == reply.status
        return await reply.text()


def test_a_sampled_profile_is_collapsed_stacks() -> None:
    """Each line has a thread, its functions separated by semicolons, and the number of samples."""

    async def scene(session: aiohttp.ClientSession, url: str) -> None:
        lines = (await text(session, f"{url}/cpu?seconds=0.05")).splitlines()
        assert lines
        for line in lines:
            stack, _, count = line.rpartition(" ")
            assert int(count) > 0
            assert " " not in stack
        assert any(line.startswith("MainThread;") and "test_profiling:" in line for line in lines)

    ask(scene)


def test_a_profile_of_calls_is_for_pstats_or_for_people() -> None:
    """`python -m pstats` loads the first format."""

    async def scene(session: aiohttp.ClientSession, url: str) -> None:
        async with session.get(f"{url}/cpu?seconds=0.01&format=pstats") as reply:
            found = marshal.loads(await reply.read())  # noqa: S302 - our own
        assert all(len(place) == 3 for place in found)
        assert "cumulative" in await text(session, f"{url}/cpu?seconds=0.01&format=text")

    ask(scene)


def test_the_heap_profile_has_lines_and_stops_tracing() -> None:
    """Tracing slows down the process, so it ends with the response."""

    async def scene(session: aiohttp.ClientSession, url: str) -> None:
        first = (await text(session, f"{url}/heap?seconds=0.01")).splitlines()[0]
        assert "allocated within 0.01 seconds" in first
        assert not tracemalloc.is_tracing()

    ask(scene)


def test_stacks_of_threads_and_counts_of_objects_are_served() -> None:
    """All of these are plain text."""

    async def scene(session: aiohttp.ClientSession, url: str) -> None:
        assert "thread MainThread\n" in await text(session, f"{url}/threads")
        assert " builtins.dict\n" in await text(session, f"{url}/objects")
        assert "/cpu?seconds" in await text(session, url)

    ask(scene)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/cpu?seconds=0", 400),
        ("/cpu?seconds=nan", 400),
        ("/heap?seconds=301", 400),
        ("/cpu?format=x", 400),
        ("/x", 404),
    ],
)
def test_an_invalid_profile_is_refused(path: str, status: int) -> None:
    """The response gives the reason."""

    async def scene(session: aiohttp.ClientSession, url: str) -> None:
        assert await text(session, url + path, status)

    ask(scene)


def test_one_profile_is_made_at_a_time() -> None:
    """Concurrent profiles would measure each other."""

    async def run() -> None:
        async with ProfilingPort("", 0) as profiling, aiohttp.ClientSession() as session:
            profiling._is_busy = True
            assert "another profile" in await text(session, f"http://127.0.0.1:{profiling.port}/threads", 409)

    asyncio.run(run())


def test_without_an_address_the_port_is_on_loopback() -> None:
    """The default is loopback, unlike upstream."""
    assert "127.0.0.1" == ProfilingPort()._address
    assert "0.0.0.0" == ProfilingPort("0.0.0.0")._address  # noqa: S104 - an explicit setting
