"""Turns of clients at a few slots: the client with the fewest running pieces of work comes first."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pyverno.errors import HostError

__all__ = ["Turns"]


class Turns:
    """At most `slots` pieces of work run at once and `most` wait; half of those, at most, are of one client."""

    def __init__(self, slots: int, most: int) -> None:
        self._free = slots
        self._most = most
        self._running = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it inside; raises HostError when too many wait."""
        await self._take(client)
        try:
            yield
        finally:
            self._running -= Counter((client,))
            self._free += 1
            self._go_on()

    async def _take(self, client: str) -> None:
        own = self._waiting.get(client, ())
        if sum(map(len, self._waiting.values())) >= self._most or len(own) >= max(1, self._most // 2):
            raise HostError("the playground is busy: try again in a moment")
        ready = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(ready)
        self._go_on()
        try:
            await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                self._running -= Counter((client,))
                self._free += 1
            else:
                self._forget(client, ready)
            self._go_on()
            raise

    def _go_on(self) -> None:
        while self._free and self._waiting:
            client = min(self._waiting, key=self._running.__getitem__)
            ready = self._waiting[client][0]
            self._forget(client, ready)
            if not ready.done():
                self._free -= 1
                self._running[client] += 1
                ready.set_result(None)

    def _forget(self, client: str, ready: asyncio.Future[None]) -> None:
        own = self._waiting.get(client)
        if own is not None and ready in own:
            own.remove(ready)
            if not own:
                del self._waiting[client]
