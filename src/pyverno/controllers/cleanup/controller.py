"""The cleanup controller: watches that feed it, and the work that one of its replicas does.

It puts the parts together and keeps them running.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.access import Access
from pyverno.cluster.servertime import ServerTime
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.cleanup.context import CleanupContext
from pyverno.controllers.cleanup.metrics import CleanupMetrics
from pyverno.controllers.cleanup.scheduled import ScheduledPolicies
from pyverno.controllers.cleanup.settings import CleanupSettings
from pyverno.controllers.cleanup.timestolive import TimesToLive
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.reads import author_reads
from pyverno.controllers.runtime.leader import Leader
from pyverno.controllers.state.foundation import Foundation
from pyverno.controllers.writeguard import WriteGuard
from pyverno.offline.system import System
from pyverno.telemetry.metrics import Metrics

__all__ = ["CleanupController", "CleanupSettings"]

_LEASE: Final = "kyverno-cleanup-controller"
_SECOND: Final = 1_000_000_000


class _ClusterSystem(System):
    """This machine, with the clock of the API server: conditions compare the time with timestamps of objects."""

    __slots__ = ("_time",)

    def __init__(self, time: ServerTime) -> None:
        self._time = time

    def now(self) -> int:
        """Return the time of the API server in nanoseconds, and that of this machine before the first response."""
        found = self._time.now()
        return super().now() if found is None else int(found * _SECOND)


class CleanupController:
    """Runs until it is stopped, or until one of its parts ends by itself."""

    def __init__(self, access: Access, settings: CleanupSettings, metrics: Metrics | None = None) -> None:
        """Take the access to the cluster, the settings, and the metrics to count in."""
        self.time = ServerTime(window=settings.clock_seconds)
        """The time of the API server, by which everything is due."""
        self._foundation = foundation = Foundation(
            access, settings, metrics, reads=author_reads, system=_ClusterSystem(self.time), server_time=self.time
        )
        self._client, self._state, metrics = foundation.client, foundation.state, foundation.metrics
        self._has_begun = False
        self._pool = ThreadPoolExecutor(max(settings.workers, 1), thread_name_prefix="cleanup")
        context = CleanupContext(
            client=self._client,
            settings=settings,
            state=self._state,
            host=foundation.hosts.host,
            applier=EffectApplier(
                self._client,
                lambda: self._state.kinds,
                guard=WriteGuard(settings.guard),
                rights=AuthorRights(self._client, lambda: self._state.kinds, settings.rights),
            ),
            notify=foundation.emit,
            metrics=CleanupMetrics(metrics.instruments),
            pool=self._pool,
            time=self.time,
        )
        self.policies = ScheduledPolicies(context, metrics)
        self.times_to_live = TimesToLive(context, metrics)
        self._leader = Leader(
            foundation.election(_LEASE),
            (self.policies.controller, self.times_to_live),
            retry_seconds=settings.lease_retry,
        )

    @property
    def is_idle(self) -> bool:
        """Return whether this replica works and nothing that is due is left."""
        return self.policies.controller.is_idle and self.times_to_live.is_idle

    @property
    def is_leader(self) -> bool:
        """Return whether this replica holds the lease: it alone deletes."""
        return self._leader.is_leader

    def problem(self) -> str:
        """Return why the controller cannot work: caches that are missing or stale; the empty text when it can."""
        return self._state.problem() if self._has_begun else "the controller has not begun"

    async def look_at_clock(self) -> None:
        """Ask the API server for its time, which wakes everything when it has moved; raises HostError, StatusError."""
        await self._client.request("GET", "/version")

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks a definition, HostError when it cannot be reached at the start or when
        a part ends by itself.
        """
        foundation = self._foundation
        try:
            await foundation.begin()
            self._has_begun = True
            leading = foundation.parts.start(self._leader.campaign())
            foundation.follow()
            await foundation.parts.wait(stop)
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            await self._leader.release()
        finally:
            await foundation.end()
            self._pool.shutdown(wait=False, cancel_futures=True)
        foundation.parts.check()
