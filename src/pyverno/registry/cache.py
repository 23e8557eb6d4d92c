"""Caches of registry answers: one call for concurrent requests, and values bounded by their size."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SingleFlight", "SizedCache"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class SizedCache(Generic[Key, Value]):
    """Values by key, each with its size; beyond `max_bytes`, the least recently used ones are evicted."""

    def __init__(self, max_bytes: int) -> None:
        """Start empty."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Key) -> Value | None:
        """Return the value, None when it is not kept."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value in the place of an older one, unless it alone is more than a quarter of what may be kept."""
        self._size -= self._kept.pop(key, (None, 0))[1]
        if size * 4 > self._max_bytes:
            return
        self._kept[key] = (value, size)
        self._size += size
        while self._size > self._max_bytes:
            _, (_, gone) = self._kept.popitem(last=False)
            self._size -= gone


class SingleFlight(Generic[Key, Value]):
    """Calls in progress by key: concurrent requests for the same key wait for the same answer."""

    def __init__(self) -> None:
        """Start without a call."""
        self._running: dict[Key, asyncio.Task[Value]] = {}

    async def do(self, key: Key, call: Callable[[], Awaitable[Value]]) -> Value:
        """Return the result of a shared call; cancelling one waiter does not stop it for the others."""
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(_awaited(call))
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        try:
            return await asyncio.shield(task)
        finally:
            del task  # the traceback of its error would hold this frame, and this frame the error

    def _forget(self, key: Key, done: asyncio.Task[Value]) -> None:
        self._running.pop(key, None)
        if not done.cancelled():
            done.exception()  # retrieved, in case no caller waits any more

    async def close(self) -> None:
        """Cancel the pending requests."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _awaited(call: Callable[[], Awaitable[Value]]) -> Value:
    return await call()
