"""A loop in a thread gives results and errors to other threads, and ends without remains."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from pyverno.errors import HostError
from pyverno.loopthread import LoopThread


async def _add(one: int, two: int) -> int:
    await asyncio.sleep(0)
    return one + two


async def _fail() -> None:
    raise HostError("no route")


def test_results_and_errors_arrive() -> None:
    """`run` and `ask` return what the coroutine returns and raise what it raises."""
    with LoopThread("test") as thread:
        assert (3, 7) == (thread.run(_add(1, 2)), thread.ask(_add(3, 4), "the sum"))
        with pytest.raises(HostError, match="no route"):
            thread.run(_fail())
        with pytest.raises(HostError, match="no route"):
            thread.ask(_fail(), "the answer")


class _Body:
    """Something that a caller holds while it waits."""


def _answer_of(thread: LoopThread) -> weakref.ref[_Body]:
    body = _Body()
    with suppress(HostError):
        thread.ask(_fail(), "the answer")
    return weakref.ref(body)


def test_an_error_keeps_no_reference_to_its_caller() -> None:
    """What the caller of a failed `ask` holds is freed with it, without a garbage collection."""
    with LoopThread("test") as thread:
        gc.disable()
        try:
            assert _answer_of(thread)() is None
        finally:
            gc.enable()


def test_work_that_takes_too_long_is_cancelled() -> None:
    """The caller learns what had no answer, and the coroutine ends."""

    async def wait(ended: list[bool]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    ended: list[bool] = []
    with LoopThread("test", seconds=0.01) as thread:
        with pytest.raises(HostError, match=r"the answer: no answer within 0\.01 seconds"):
            thread.ask(wait(ended), "the answer")
        with pytest.raises(TimeoutError):
            thread.run(wait(ended), seconds=0.01)
    assert [True, True] == ended


def test_nothing_is_left_at_the_end() -> None:
    """Tasks that still run are cancelled, and generators closed, before the loop ends; closing twice does no harm."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    async def count() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("generator")

    async def begin() -> int:
        numbers.append(count())
        tasks.append(asyncio.create_task(work()))
        await asyncio.sleep(0)
        return await anext(numbers[0])

    numbers: list[AsyncIterator[int]] = []
    tasks: list[asyncio.Task[None]] = []
    thread = LoopThread("test")
    assert 1 == thread.run(begin())
    thread.close()
    thread.close()
    gc.collect()
    assert ["task", "generator"] == ended
