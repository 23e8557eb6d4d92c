"""Live updates: open pages are notified of changed results, and load their contents again.

A message carries counts and the number of the latest change, never results: a page has its own filter.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.ui.store.writer import Change

__all__ = ["LiveUpdates"]

_MOST_LISTENERS: Final = 500


class LiveUpdates:
    """Sends messages to every open page; a slow page gets the latest only."""

    def __init__(self, heartbeat_seconds: float = 20.0, write_seconds: float = 30.0, number: int = 0) -> None:
        """Begin without listeners.

        `heartbeat_seconds` is the longest silence of a connection, `write_seconds` the time that a page has to read.
        `number` is that of the latest change; pages compare it, so that no two servers should begin with the same.
        """
        self.heartbeat_seconds = heartbeat_seconds
        self.write_seconds = write_seconds
        self._listeners: set[asyncio.Queue[JSONObject]] = set()
        self._clients = Counter[str]()
        self.number = number

    def is_full(self, client: str) -> bool:
        """Return whether no further page of a client can listen: one client gets half of the places at most."""
        return len(self._listeners) >= _MOST_LISTENERS or self._clients[client] >= _MOST_LISTENERS // 2

    def publish(self, changes: Iterable[Change]) -> None:
        """Send the number of results by status to all pages, unless nothing changed."""
        counts = Counter(change.after or "resolved" for change in changes)
        if counts:
            self.publish_counts(dict(counts))

    def publish_counts(self, counts: JSONObject) -> None:
        """Send the number of results by status to all pages."""
        self.number += 1
        message: JSONObject = {"number": self.number, "changes": counts}
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(message)

    @asynccontextmanager
    async def listen(self, client: str = "") -> AsyncIterator[asyncio.Queue[JSONObject]]:
        """Return a queue of the messages from now on."""
        queue: asyncio.Queue[JSONObject] = asyncio.Queue(maxsize=1)
        self._listeners.add(queue)
        self._clients[client] += 1
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            self._clients -= Counter((client,))
