"""Readers of a store for an event loop: each question runs in a thread, with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TypeVar

from pyverno.threads import in_thread
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.reader import Reader
from pyverno.ui.store.scope import SCOPE
from pyverno.ui.store.seriescolumns import SeriesColumns

__all__ = ["ReaderPool"]

_T = TypeVar("_T")
_READERS: Final = 4
_SECONDS: Final = 30.0
_CHECK_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 0.5


class ReaderPool:
    """Several readers of one store; an async context manager. Questions wait while all are busy."""

    def __init__(self, path: str, readers: int = _READERS, *, seconds: float = _SECONDS) -> None:
        """Take the file of the store, whose tables must exist, and the number of simultaneous queries.

        A question may take `seconds`, and may wait as long for a reader.
        """
        self._path = path
        self._count = readers
        self._seconds = seconds
        self._free: asyncio.Queue[Reader] = asyncio.Queue()
        self._all: list[Reader] = []
        self._is_broken = False

    async def __aenter__(self) -> Self:
        columns = SeriesColumns()
        for _ in range(self._count):
            reader = await in_thread(Reader, self._path, columns)
            self._all.append(reader)
            self._free.put_nowait(reader)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reader in self._all:
            reader.close()

    async def ask(self, question: Callable[[Reader], _T], *, seconds: float | None = None) -> _T:
        """Return the result of a query, within the scope of its request.

        Raises StoreUnavailableError when the store does not answer in time: a question that takes longer is ended.
        """
        limit = self._seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(self._seconds):
                reader = await self._free.get()
        except TimeoutError:
            raise StoreUnavailableError("all readers of the store are busy") from None
        reader.scope = SCOPE.get()
        running = asyncio.ensure_future(in_thread(question, reader))

        async def end() -> None:
            await asyncio.sleep(limit)
            while True:  # the question may be between two statements
                reader.interrupt()
                await asyncio.sleep(_AGAIN_SECONDS)

        ending = asyncio.ensure_future(end())

        def ended(_: asyncio.Future[_T]) -> None:
            ending.cancel()
            self._is_broken = not running.cancelled() and isinstance(running.exception(), StoreUnavailableError)
            # after a disconnect of the client, a thread may still use the reader: not before now it is free
            self._free.put_nowait(reader)

        running.add_done_callback(ended)
        return await asyncio.shield(running)

    async def problem(self) -> str:
        """Return why results cannot be read; "" as long as they can."""
        if not self._is_broken:
            return ""
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self.ask(Reader.check)
        except (StoreUnavailableError, TimeoutError):
            return "the store of results does not answer"
        return ""
