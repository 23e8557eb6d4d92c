"""Several servers with one store: one of them fills it and sends notifications, and all show the same results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from pyverno.errors import PyvernoError
from pyverno.ui.live import LiveUpdates
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.opening import is_url
from pyverno.ui.store.writer import Writer

__all__ = ["follow_announcements", "lead"]

_LOG: Final = logging.getLogger("pyverno.ui")
_PAUSE_SECONDS: Final = 5.0


async def lead(writer: Writer, work: Callable[[], Awaitable[None]], *, pause: float = _PAUSE_SECONDS) -> None:
    """Do the work whenever this server is the one writer of its store, until cancelled.

    The work is cancelled when the connection to the store is lost; it starts again by reading everything, also after
    a bug: the pages go on.
    """
    while True:
        try:
            if await asyncio.to_thread(writer.lead):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_watch(writer, pause))
                    await work()
        except* StoreUnavailableError as lost:
            _LOG.warning("the store cannot be written", extra={"error": str(_first(lost))})
        except* PyvernoError:
            raise
        except* Exception:
            _LOG.exception("background work failed, and starts again")
        await asyncio.sleep(pause)


async def follow_announcements(location: str, live: LiveUpdates, *, pause: float = _PAUSE_SECONDS) -> None:
    """Forward the announcements of a database's writer to open pages, until cancelled; a file has one server only."""
    if not is_url(location):
        return
    from pyverno.ui.store.postgresql import announcements

    while True:
        try:
            async for counts in announcements(location):
                live.publish_counts(counts)
        except StoreUnavailableError as error:
            _LOG.warning("live updates are interrupted", extra={"error": error.message})
        await asyncio.sleep(pause)


async def _watch(writer: Writer, pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            await asyncio.to_thread(writer.check)
        except writer.failures as error:
            raise StoreUnavailableError(f"the connection of the writer is lost: {error}") from error


def _first(group: BaseExceptionGroup[StoreUnavailableError]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
