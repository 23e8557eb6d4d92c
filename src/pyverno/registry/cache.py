"""Caches of registry answers: one call for concurrent requests, and a memory bounded in bytes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["ByteCache", "SingleFlight"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ByteCache(Generic[Key]):
    """Bytes by key; beyond `max_bytes`, the least recently used entries are evicted."""

    def __init__(self, max_bytes: int) -> None:
        """Start empty."""
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: Key) -> bytes | None:
        """Return the bytes, None when they are not kept."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Key, value: bytes) -> None:
        """Keep bytes, unless they alone are more than a quarter of what may be kept."""
        if len(value) * 4 > self._max_bytes or key in self._kept:
            return
        self._kept[key] = value
        self._size += len(value)
        while self._size > self._max_bytes:
            _, gone = self._kept.popitem(last=False)
            self._size -= len(gone)


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
