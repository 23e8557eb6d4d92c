"""The long-running tasks of a controller: if one ends unexpectedly, the controller stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from pyverno.errors import HostError

__all__ = ["Tasks"]

log = logging.getLogger("pyverno.controllers")


class Tasks:
    """Tasks that are meant to run until they are cancelled.

    A task that ends stops the process, which is safer than continuing with stale state.
    """

    def __init__(self) -> None:
        """Start with no task."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._reason = ""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that runs as long as the controller."""
        part = asyncio.create_task(work)
        self._tasks.add(part)
        part.add_done_callback(self._note_end)
        return part

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait until `stop` is set or a task has ended unexpectedly."""
        waiting = asyncio.ensure_future(stop.wait())
        breaking = asyncio.ensure_future(self._broken.wait())
        await asyncio.wait((waiting, breaking), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        breaking.cancel()

    async def end(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for part in self._tasks:
            part.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise HostError when a task has ended unexpectedly."""
        if self._broken.is_set():
            raise HostError(f"a part of the controller ended: {self._reason}")

    def _note_end(self, part: asyncio.Task[None]) -> None:
        if not part.cancelled():
            error = part.exception()
            self._reason = str(error or "it had nothing more to do")
            log.error("a part of the controller ended", exc_info=error)
            self._broken.set()
