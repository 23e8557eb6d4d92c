"""The foundation of every controller: its clients, the hosts of rules, the state of the cluster, events and metrics.

A controller adds its own parts, starts them with `parts`, and ends all of them with `end`.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.host import ReadRights
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.cluster.servertime import ServerTime
from pyverno.controllers.runtime.events import Event, Events
from pyverno.controllers.runtime.metricslifecycle import begin_metrics, count_queries, refresh_metrics
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
from pyverno.controllers.state.settings import ControllerSettings, PolicyRights
from pyverno.kube.kinds import KindTable
from pyverno.offline.system import System
from pyverno.telemetry.metrics import Metrics

__all__ = ["Foundation"]


class Foundation:
    """The parts that all controllers share, put together and not yet started.

    `client` is for everything but events, which have a client with rates of their own. `parts` are the tasks of the
    process: when one of them ends by itself, the process ends.
    """

    def __init__(
        self,
        access: Access,
        settings: ControllerSettings,
        metrics: Metrics | None = None,
        *,
        reads: Callable[[Client, Callable[[], KindTable], PolicyRights], ReadRights],
        system: System | None = None,
        server_time: ServerTime | None = None,
    ) -> None:
        """Take the access to the cluster, the settings, and the metrics to count in.

        `reads` makes what decides about the reads of namespaced policies, whichever rule of the process reads.
        `system` is the machine that rules see (clock, environment); `server_time` follows the API server's clock.
        """
        self._settings = settings
        self.metrics = metrics = metrics or Metrics()
        on_query = count_queries(metrics)
        self.client = Client(
            access,
            qps=settings.qps,
            burst=settings.burst,
            on_request=on_query,
            server_time=server_time,
            on_fault=metrics.faulted_change,
        )
        self._events_client = Client(access, qps=settings.events_qps, burst=settings.events_burst, on_request=on_query)
        self.parts = Tasks()
        self.hosts = HostFactory(
            self.client,
            settings.hosts,
            lambda: self.state.kinds,
            emit=self.emit,
            system=system,
            namespace=settings.namespace,
            read_rights=reads(self.client, lambda: self.state.kinds, settings.rights),
        )
        self.state = ClusterState(self.client, settings.state, self.hosts, self.parts.start, metrics)
        self.events = Events(
            self._events_client,
            settings.events,
            configuration=lambda: self.state.configuration,
            uid_of=self.state.store.uid_of,
            on_drop=metrics.dropped_event,
            kinds=lambda: self.state.kinds,
            revision=lambda: self.state.revision,
            unconfirmed=metrics.left_unconfirmed,
        )

    def emit(self, event: Event) -> None:
        """Queue an event."""
        self.events.emit(event)

    def election(self, lease: str) -> LeaderElection:
        """Return this replica's candidacy for a lease in the namespace of the controllers."""
        settings = self._settings
        times = LeaseTimes.of_retry(settings.lease_retry)
        return LeaderElection(self.client, lease, settings.namespace, settings.identity, times)

    async def begin(self) -> None:
        """Read the settings of metrics and the state of the cluster; raises UsageError, HostError."""
        settings = self._settings
        await begin_metrics(self.client, settings.metrics_config_map, settings.namespace, self.metrics)
        await self.state.start()

    def follow(self) -> None:
        """Start the background tasks: follow definitions and the trusted root, write events, refresh metrics."""
        self.parts.start(self.state.follow_definitions())
        self.parts.start(self.events.run())
        followed_root = self.hosts.followed_root()
        if followed_root is not None:
            self.parts.start(followed_root.run())
        if self.metrics.settings.refresh_seconds:
            self.parts.start(refresh_metrics(self.metrics, self.metrics.settings.refresh_seconds))

    async def end(self) -> None:
        """End all tasks, then close the connections."""
        await self.parts.end()
        await self.hosts.close()
        await self._events_client.close()
        await self.client.close()
