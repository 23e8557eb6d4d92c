"""Reads in parallel, a bounded number at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from pyverno.errors import HostError

__all__ = ["AT_ONCE", "read_all", "read_each"]

AT_ONCE: Final = 8
"""The number of simultaneous reads of one caller."""

T = TypeVar("T")


async def read_each(calls: Iterable[Callable[[], Awaitable[T]]]) -> Sequence[T | HostError]:
    """Return the result or the HostError of each call, in their order; raises every other error."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(call: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await call()

    answers = await asyncio.gather(*map(read, calls), return_exceptions=True)
    found: list[T | HostError] = []
    for each in answers:
        if isinstance(each, HostError):
            found.append(each.copied())
        elif isinstance(each, BaseException):
            raise each
        else:
            found.append(each)
    return found


async def read_all(calls: Iterable[Callable[[], Awaitable[T]]]) -> Sequence[T]:
    """Return the results of all calls, in their order; raises the first error in this order."""
    found: list[T] = []
    for each in await read_each(calls):
        if isinstance(each, HostError):
            raise each
        found.append(each)
    return found
