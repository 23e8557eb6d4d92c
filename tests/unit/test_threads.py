"""Calls in threads for an event loop: results, contexts and every exception arrive."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import pytest

from pyverno.threads import in_pool, in_thread

SOURCE = Path(__file__).parents[2] / "src"
NAME = ContextVar("NAME", default="")


def fail(error: BaseException) -> str:
    """Raise an exception."""
    raise error


def call(function: Callable[..., str], *args: object, in_a_pool: bool) -> str:
    """Call a function in a thread."""

    async def run() -> str:
        NAME.set("ann")
        async with asyncio.timeout(60):
            if not in_a_pool:
                return await in_thread(function, *args)
            with ThreadPoolExecutor(1) as pool:
                return await in_pool(pool, function, *args)

    return asyncio.run(run())


@pytest.mark.parametrize("in_a_pool", [True, False])
def test_a_call_has_the_context_of_its_caller(in_a_pool: bool) -> None:
    """As with `asyncio.to_thread`."""
    assert "ann" == call(NAME.get, in_a_pool=in_a_pool)


@pytest.mark.parametrize("in_a_pool", [True, False])
def test_every_exception_arrives(in_a_pool: bool) -> None:
    """Also a StopIteration, which no future takes: its caller would wait forever."""
    with pytest.raises(KeyError):
        call(fail, KeyError("x"), in_a_pool=in_a_pool)
    with pytest.raises(RuntimeError, match="stopped an iteration") as found:
        call(fail, StopIteration(), in_a_pool=in_a_pool)
    assert isinstance(found.value.__cause__, StopIteration)


def test_all_calls_in_threads_are_made_here() -> None:
    """So that none of them can hang its caller."""
    direct = re.compile(r"\.to_thread\(|\.run_in_executor\(")
    found = [path.name for path in SOURCE.rglob("*.py") if direct.search(path.read_text(encoding="utf-8"))]
    assert ["threads.py"] == found
