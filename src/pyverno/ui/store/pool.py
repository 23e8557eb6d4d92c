"""Readers of a store for an event loop: each question runs in a thread, with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from pyverno.ui.store.reader import Reader
from pyverno.ui.store.scope import SCOPE
from pyverno.ui.store.seriescolumns import SeriesColumns

__all__ = ["ReaderPool"]

_T = TypeVar("_T")
_READERS: Final = 4


class ReaderPool:
    """Several readers of one store; an async context manager. Questions wait while all are busy."""

    def __init__(self, path: str, readers: int = _READERS) -> None:
        """Take the file of the store, whose tables must exist, and the number of simultaneous queries."""
        self._path = path
        self._count = readers
        self._free: asyncio.Queue[Reader] = asyncio.Queue()
        self._all: list[Reader] = []

    async def __aenter__(self) -> Self:
        columns = SeriesColumns()
        for _ in range(self._count):
            reader = await asyncio.to_thread(Reader, self._path, columns)
            self._all.append(reader)
            self._free.put_nowait(reader)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reader in self._all:
            reader.close()

    async def ask(self, question: Callable[[Reader], _T]) -> _T:
        """Return the result of a query, within the scope of its request."""
        reader = await self._free.get()
        reader.scope = SCOPE.get()
        running = asyncio.ensure_future(asyncio.to_thread(question, reader))
        # after a disconnect of the client, a thread may still use the reader: do not give it to another query
        running.add_done_callback(lambda _: self._free.put_nowait(reader))
        return await asyncio.shield(running)
