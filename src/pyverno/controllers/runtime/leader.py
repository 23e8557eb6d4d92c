"""Leader election: runs a list of controllers while this replica holds the lease.

They start when the lease is acquired and are cancelled before another replica could acquire it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from pyverno.cluster.leases import LeaderElection
from pyverno.controllers.runtime.recurring import RecurringFault

__all__ = ["Leader", "Runnable", "Together", "log_faults"]

log = logging.getLogger("pyverno.controllers")


class Runnable(Protocol):
    """A part that a leader runs (`controllers.runtime.reconcile.Controller`)."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


def log_faults(election: LeaderElection) -> None:
    """Log why a lease cannot be read or written: a replica that may not, waits for it without end."""
    fault = RecurringFault(log, f"the lease {election} cannot be used", f"the lease {election} can be used again")

    def note(reason: str) -> None:
        if reason:
            fault.failed(reason)
        else:
            fault.succeeded()

    election.report(note)


class Together:
    """Parts that begin and end together."""

    def __init__(self, parts: Sequence[Runnable]) -> None:
        """Take the parts."""
        self._parts = tuple(parts)

    async def run(self) -> None:
        """Run all parts until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._parts:
                group.create_task(each.run())


class Leader:
    """Waits for the lease and runs the controllers while it holds it."""

    def __init__(
        self,
        election: LeaderElection,
        controllers: Sequence[Runnable],
        *,
        prepare: Callable[[], Awaitable[None]] | None = None,
        retry_seconds: float = 2.0,
    ) -> None:
        """Take the election and the controllers; `prepare` is awaited at the start of every term, before they run."""
        self._election = election
        self._together = Together(controllers)
        self._prepare = prepare
        self._retry_seconds = retry_seconds
        log_faults(election)

    @property
    def is_leader(self) -> bool:
        """Return whether this replica leads."""
        return self._election.is_leader

    async def campaign(self) -> None:
        """Acquire the lease again and again, and lead while holding it, until cancelled."""
        while True:
            await self._election.run(self._lead)
            log.warning("the lease is lost", extra={"fields": {"lease": str(self._election)}})
            await asyncio.sleep(self._retry_seconds)

    async def release(self) -> None:
        """Release the lease, so that another replica need not wait until it expires."""
        await self._election.release()

    async def _lead(self) -> None:
        if self._prepare is not None:
            await self._prepare()
        await self._together.run()
