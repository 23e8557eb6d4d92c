"""The cleanup controller: watches that feed it, and the work that one of its replicas does.

It puts the parts together and keeps them running. This module must never evaluate a policy.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.cluster.servertime import ServerTime
from pyverno.controllers.applier import EffectApplier
from pyverno.controllers.cleanup.context import CleanupContext
from pyverno.controllers.cleanup.metrics import CleanupMetrics
from pyverno.controllers.cleanup.scheduled import ScheduledPolicies
from pyverno.controllers.cleanup.settings import CleanupSettings
from pyverno.controllers.cleanup.timestolive import TimesToLive
from pyverno.controllers.runtime.events import Event, Events
from pyverno.controllers.runtime.leader import Leader
from pyverno.controllers.runtime.metricslifecycle import begin_metrics, count_queries, refresh_metrics
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
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
        self._settings = settings
        self._metrics = metrics = metrics or Metrics()
        self.time = ServerTime(window=settings.clock_seconds)
        """The time of the API server, by which everything is due."""
        on_query = count_queries(metrics)
        self._client = Client(
            access, qps=settings.qps, burst=settings.burst, on_request=on_query, server_time=self.time
        )
        self._events_client = Client(access, qps=settings.events_qps, burst=settings.events_burst, on_request=on_query)
        self._has_begun = False
        self._parts = Tasks()
        self._hosts = HostFactory(
            self._client,
            settings.hosts,
            lambda: self._state.kinds,
            emit=self._notify,
            system=_ClusterSystem(self.time),
        )
        self._state = ClusterState(self._client, settings.state, self._hosts, self._parts.start, metrics)
        self._events = Events(
            self._events_client,
            settings.events,
            configuration=lambda: self._state.configuration,
            uid_of=self._state.store.uid_of,
            on_drop=metrics.dropped_event,
        )
        self._pool = ThreadPoolExecutor(max(settings.workers, 1), thread_name_prefix="cleanup")
        context = CleanupContext(
            client=self._client,
            settings=settings,
            state=self._state,
            host=self._hosts.host,
            applier=EffectApplier(self._client, lambda: self._state.kinds, guard=WriteGuard(settings.guard)),
            notify=self._notify,
            metrics=CleanupMetrics(metrics.instruments),
            pool=self._pool,
            time=self.time,
        )
        self.policies = ScheduledPolicies(context, metrics)
        self.times_to_live = TimesToLive(context, metrics)
        self._leader = Leader(
            LeaderElection(
                self._client, _LEASE, settings.namespace, settings.identity, LeaseTimes.of_retry(settings.lease_retry)
            ),
            (self.policies.controller, self.times_to_live),
            retry_seconds=settings.lease_retry,
        )

    @property
    def is_idle(self) -> bool:
        """Tell whether this replica works and nothing that is due is left."""
        return self.policies.controller.is_idle and self.times_to_live.is_idle

    @property
    def is_leader(self) -> bool:
        """Tell whether this replica holds the lease: it alone deletes."""
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
        settings = self._settings
        try:
            await begin_metrics(self._client, settings.metrics_config_map, settings.namespace, self._metrics)
            await self._state.start()
            self._has_begun = True
            leading = self._parts.start(self._leader.campaign())
            self._parts.start(self._state.follow_definitions())
            self._parts.start(self._events.run())
            if self._metrics.settings.refresh_seconds:
                self._parts.start(refresh_metrics(self._metrics, self._metrics.settings.refresh_seconds))
            await self._parts.wait(stop)
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            await self._leader.release()
        finally:
            await self._parts.end()
            self._pool.shutdown(wait=False, cancel_futures=True)
            await self._hosts.close()
            await self._events_client.close()
            await self._client.close()
        self._parts.check()

    def _notify(self, event: Event) -> None:
        self._events.emit(event)
