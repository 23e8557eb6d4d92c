"""The parts of a controller that run as long as it does: one that ends by itself ends all.

This module must never know what a part does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from pyverno.errors import HostError

__all__ = ["Tasks"]

log = logging.getLogger("pyverno.controllers")


class Tasks:
    """Tasks that never end by themselves unless something is wrong.

    A part that breaks stops the process, which is better than going on with what is no longer true.
    """

    def __init__(self) -> None:
        """Begin without any part."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._reason = ""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a part that is to run as long as we do."""
        part = asyncio.create_task(work)
        self._tasks.add(part)
        part.add_done_callback(self._note_end)
        return part

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait until `stop` is set or a part has ended by itself."""
        waiting = asyncio.ensure_future(stop.wait())
        breaking = asyncio.ensure_future(self._broken.wait())
        await asyncio.wait((waiting, breaking), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        breaking.cancel()

    async def end(self) -> None:
        """Cancel every part and wait until all are gone."""
        for part in self._tasks:
            part.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise HostError when a part has ended by itself."""
        if self._broken.is_set():
            raise HostError(f"a part of the controller ended: {self._reason}")

    def _note_end(self, part: asyncio.Task[None]) -> None:
        if not part.cancelled():
            error = part.exception()
            self._reason = str(error or "it had nothing more to do")
            log.error("a part of the controller ended", exc_info=error)
            self._broken.set()
