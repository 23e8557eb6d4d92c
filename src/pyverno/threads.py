"""Calls in threads for an event loop: whatever a call raises reaches the caller.

Before Python 3.12 no future takes a StopIteration, and the caller of `asyncio.to_thread` waits forever: here it becomes
a RuntimeError.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["in_pool", "in_thread"]

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns in a thread, in the context of the caller.

    >>> asyncio.run(in_thread(sorted, [2, 1]))
    [1, 2]
    """
    return await asyncio.to_thread(_call, partial(function, *args, **kwargs))


async def in_pool(pool: Executor | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns in a thread of a pool, in the context of the caller."""
    context = contextvars.copy_context()
    work = partial(context.run, _call, partial(function, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(pool, work)


def _call(work: Callable[[], T]) -> T:
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("a call in a thread stopped an iteration") from error
