"""A bounded queue of objects that several workers write in the background, with retries.

Adding an item never blocks. When the API server is unreachable, writes are retried with growing delays until the item
is too old. Items that do not fit or expire are reported to a callback, never lost silently.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from pyverno.errors import HostError
from pyverno.kube.status import StatusError

__all__ = ["Outbox"]

_CHANCE: Final = random.SystemRandom()
_FIRST_PAUSE: Final = 0.5
_GROWTH: Final = 1.5
_LONGEST_PAUSE: Final = 10.0
_MAX_BYTES: Final = 16 * 1024 * 1024
"""A thousand requests of usual size take a third of it; in memory each byte of JSON takes several."""

_MAX_SHARE: Final = 0.8
"""The share of the queue that one source may fill: the rest is left for the others."""

_LATER: Final = (401, 408, 409, 429, 500, 502, 503, 504)
"""Statuses that may be temporary, whatever the item is."""

log = logging.getLogger("pyverno.outbox")
Item = TypeVar("Item")


class Outbox(Generic[Item]):
    """Queues items and writes them while `run` runs. Not thread-safe: call it on the event loop's thread."""

    def __init__(
        self,
        write: Callable[[Item], Awaitable[None]],
        *,
        on_lost: Callable[[Item, str], None],
        max_items: int = 1000,
        writers: int = 4,
        retry_seconds: float = 120.0,
        weigh: Callable[[Item], int] = lambda item: 0,
        max_bytes: int = _MAX_BYTES,
        source_of: Callable[[Item], str] = lambda item: "",
    ) -> None:
        """Take the function that writes an item, and a callback for items that are given up, with the reason.

        `max_items` bounds the queue and `max_bytes` its total weight as `weigh` measures it; a single oversized item
        is still accepted. No source of items, as `source_of` names it ("" = not bounded), fills the queue alone. An
        item is retried for `retry_seconds` seconds. `write` raises HostError or StatusError.
        """
        self._write = write
        self._on_lost = on_lost
        self._max_items = max_items
        self._writers = writers
        self._retry_seconds = retry_seconds
        self._weigh = weigh
        self._max_bytes = max_bytes
        self._bytes = 0
        self._source_of = source_of
        self._by_source: dict[str, int] = {}
        self._waiting: asyncio.Queue[tuple[float, int, Item]] = asyncio.Queue()
        self._in_work = 0
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return self._waiting.qsize() + self._in_work

    def put(self, item: Item) -> bool:
        """Queue an item; False when the queue is full, after calling `on_lost`."""
        weight = self._weight_of(item)
        if self._waiting.qsize() >= self._max_items or (len(self) and self._bytes + weight > self._max_bytes):
            self._lose(item, "too many are waiting to be written")
            return False
        source = self._source_of(item)
        share = self._by_source.get(source, 0)
        if source and share >= self._max_items * _MAX_SHARE:  # guard: a source leaves room for others
            self._lose(item, "too many of one caller are waiting to be written")
            return False
        self._by_source[source] = share + 1
        self._bytes += weight
        self._empty.clear()
        self._waiting.put_nowait((time.monotonic() + self._retry_seconds, weight, item))
        return True

    def _weight_of(self, item: Item) -> int:
        try:
            return self._weigh(item)
        except Exception:  # an item of unknown weight is written like others
            log.exception("an item could not be weighed")
            return 0

    def _lose(self, item: Item, reason: str) -> None:
        """Report an item that is given up; a bug of the callback costs its report, and never the other items."""
        try:
            self._on_lost(item, reason)
        except Exception:
            log.exception("a lost item could not be reported", extra={"fields": {"reason": reason}})

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._writers):
                group.create_task(self._work())

    async def flush(self, seconds: float) -> None:
        """Wait up to `seconds` until everything is written, then report the remaining items as lost."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            while not self._waiting.empty():
                _, weight, item = self._waiting.get_nowait()
                self._bytes -= weight
                self._leave(item)
                self._lose(item, "the process ends")

    async def _work(self) -> None:
        while True:
            until, weight, item = await self._waiting.get()
            self._in_work += 1
            try:
                await self._deliver(item, until)
            except Exception:  # one item must not end the writing of the others
                log.exception("an item could not be written")
                self._lose(item, "an internal error occurred; see the log")
            finally:
                self._in_work -= 1
                self._bytes -= weight
                self._leave(item)
                if not len(self):
                    self._empty.set()

    def _leave(self, item: Item) -> None:
        """Count an item of its source no more."""
        source = self._source_of(item)
        left = self._by_source.get(source, 0) - 1
        if left > 0:
            self._by_source[source] = left
        else:
            self._by_source.pop(source, None)

    async def _deliver(self, item: Item, until: float) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                await self._write(item)
                return
            except asyncio.CancelledError:
                self._lose(item, "the process ends")
                raise
            except (HostError, StatusError) as error:
                is_final = isinstance(error, StatusError) and error.status not in _LATER
                if is_final or time.monotonic() + pause > until:
                    self._lose(item, str(error))
                    return
            await asyncio.sleep(pause * _CHANCE.uniform(0.5, 1.5))
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
