"""Asynchronous context managers for tests that are not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from pyverno.loopthread import LoopThread

__all__ = ["entered"]

T = TypeVar("T")
_SECONDS = 300.0


@contextmanager
def entered(thread: LoopThread, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an asynchronous context manager on the loop of a thread, and leave it in the same task."""
    end = asyncio.Event()

    async def begin() -> tuple[T, asyncio.Task[None]]:
        opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            async with context as value:
                opened.set_result(value)
                await end.wait()

        holding = asyncio.create_task(hold())
        await asyncio.wait((holding, opened), return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await holding
        return opened.result(), holding

    async def leave(holding: asyncio.Task[None]) -> None:
        end.set()
        await holding

    value, holding = thread.run(begin(), _SECONDS)
    try:
        yield value
    finally:
        thread.run(leave(holding), _SECONDS)
