"""Several servers with one store: one of them fills it and sends notifications, and all show the same results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from pyverno.errors import HostError, PyvernoError
from pyverno.threads import in_thread
from pyverno.ui.live import LiveUpdates
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.opening import is_url
from pyverno.ui.store.writer import Writer

__all__ = ["Leading", "follow_announcements", "lead"]

_LOG: Final = logging.getLogger("pyverno.ui")
_PAUSE_SECONDS: Final = 5.0


class Leading:
    """Whether the work of the writer goes on: `problem` says why not, `has_worked` that it went on for a while."""

    def __init__(self) -> None:
        self.problem = ""
        self.has_worked = False

    def problems(self) -> tuple[str, ...]:
        """Return the reason as readiness shows it."""
        return (self.problem,) if self.problem else ()


async def lead(
    writer: Writer,
    work: Callable[[], Awaitable[None]],
    *,
    pause: float = _PAUSE_SECONDS,
    leading: Leading | None = None,
) -> None:
    """Do the work whenever this server is the one writer of its store, until cancelled.

    The work is cancelled when the connection to the store is lost; it starts again by reading everything, also after
    a bug: the pages go on. `leading` shows the reason meanwhile. A cluster that refuses before the work has run for a
    while is a mistake of the settings, and raises HostError; later it is an outage.
    """
    leading = leading or Leading()
    while True:
        try:
            is_leader = await in_thread(writer.lead)
            if not is_leader:
                leading.problem = ""  # another server writes
            else:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_recover(leading, 2 * pause))
                    tasks.create_task(_watch(writer, pause))
                    await work()
        except* StoreUnavailableError as lost:
            leading.problem = "the store of results cannot be written"
            _LOG.warning("the store cannot be written", extra={"fields": {"error": str(_first(lost))}})
        except* HostError as away:
            if not leading.has_worked:
                raise
            leading.problem = "a cluster does not answer"
            _LOG.warning("a cluster does not answer", extra={"fields": {"error": str(_first(away))}})
        except* PyvernoError:
            raise
        except* Exception:
            leading.problem = "the work that fills the store failed"
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
            _LOG.warning("live updates are interrupted", extra={"fields": {"error": error.message}})
        await asyncio.sleep(pause)


async def _recover(leading: Leading, seconds: float) -> None:
    """Forget the problem when the work has run for a while."""
    await asyncio.sleep(seconds)
    leading.problem, leading.has_worked = "", True


async def _watch(writer: Writer, pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            await in_thread(writer.check)
        except writer.failures as error:
            raise StoreUnavailableError(f"the connection of the writer is lost: {error}") from error


def _first(group: BaseExceptionGroup[HostError]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
