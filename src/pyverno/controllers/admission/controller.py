"""The admission controller: a webhook server, the watches that feed it, and what only the leader of the replicas does.

It puts the parts together and keeps them running; what they are stands in `clusterworld.py` and `leader.py`. This
module must never judge a request.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.admission.followup import Followup
from pyverno.controllers.admission.leader import AdmissionLeader
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.admissionpolicies.reconciler import check_mutating
from pyverno.controllers.certificates.handshake import OwnHandshake
from pyverno.controllers.runtime.events import Event, Events
from pyverno.controllers.runtime.metricslifecycle import begin_metrics, count_queries, refresh_metrics
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
from pyverno.controllers.state.permissions import TargetPermissions
from pyverno.controllers.webhooks.fixed import CLEANUP_PATH
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observer, Observers
from pyverno.webhook.cleanupreviews import cleanup_paths
from pyverno.webhook.heartbeat import HEARTBEAT_PATH, heartbeat_review
from pyverno.webhook.policyreviews import DocumentReviews
from pyverno.webhook.server import Health, WebhookServer

__all__ = ["AdmissionController", "AdmissionSettings"]

_FLUSH_SECONDS: Final = 10.0
"""Together with what the server lingers and drains this ends before the pod's grace period does."""


class AdmissionController:
    """Runs until it is told to stop, or until one of its parts ends by itself."""

    def __init__(
        self,
        access: Access,
        settings: AdmissionSettings,
        observer: Observer,
        metrics: Metrics | None = None,
        peers: Health | None = None,
    ) -> None:
        """Take how the cluster is reached, the settings, who is told of answers, and metrics that tell of policies.

        `peers` tells of the other processes of this replica: it is ready when all of them are.
        """
        self._settings = settings
        self._peers = peers
        self._observer = observer
        self._metrics = metrics = metrics or Metrics()
        told = count_queries(metrics)
        self._client = Client(access, qps=settings.qps, burst=settings.burst, on_request=told)
        self._events_client = Client(access, qps=settings.events_qps, burst=settings.events_burst, on_request=told)
        self._parts = Tasks()
        self._hosts = HostFactory(
            self._client,
            settings.hosts,
            lambda: self._cluster.kinds,
            emit=self._emit,
        )
        self._cluster = ClusterState(self._client, settings.state, self._hosts, self._parts.start, metrics)
        self._leader = AdmissionLeader(
            self._client, settings.leader, self._cluster, metrics, (self._hosts.status.controller,)
        )
        self._events = Events(
            self._events_client,
            settings.events,
            configuration=lambda: self._cluster.configuration,
            uid_of=self._cluster.store.uid_of,
            on_drop=metrics.dropped_event,
        )
        self._followup = Followup(
            self._client,
            settings.followup,
            self._cluster,
            self._events,
            observer,
            host=self._hosts.host,
            metrics=metrics,
        )
        self._server: WebhookServer | None = None
        self._handshake = OwnHandshake(settings.certificates.asked_name, lambda: self._leader.certificates.bundle)

    @property
    def ready(self) -> asyncio.Event:
        """Set when the webhooks are in place for the first time."""
        return self._leader.ready

    @property
    def is_settled(self) -> bool:
        """Tell whether this replica leads and has written everything that follows from what its watches brought."""
        return self._leader.is_settled

    @property
    def is_idle(self) -> bool:
        """Tell whether everything that follows from answers is written."""
        return self._followup.is_idle

    def problem(self) -> str:
        """Return why requests should go elsewhere: something of this process, or of the others that share its port."""
        return self.own_problem() or (self._peers.problem() if self._peers is not None else "")

    def own_problem(self) -> str:
        """Return what is wrong with this process: caches that are not there or stale, a certificate that ended."""
        if self._server is None:
            return "nobody listens yet"
        return self._cluster.problem() or self._leader.certificates.problem() or self._handshake.problem()

    def has_seen(self, gvr: GVR, name: str, namespace: str, version: str) -> bool:
        """Tell whether the watches have brought an object in this version or a later one, or with "" that it is gone.

        What is not watched is taken as seen.
        """
        return self._cluster.has_seen(gvr, name, namespace, version)

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks what we need, HostError when it cannot be reached at the start or when
        a part of us ends by itself.
        """
        try:
            await begin_metrics(
                self._client, self._settings.metrics_config_map, self._settings.namespace, self._metrics
            )
            await self._cluster.start()
            if self._settings.generates_mutating:
                check_mutating(self._cluster.kinds)
            await self._leader.certificates.start()
            server = await self._serve()
            self._parts.start(self._handshake.run(self._settings.address, server.port))
            leading = self._parts.start(self._leader.campaign())
            self._parts.start(self._cluster.follow_definitions())
            self._parts.start(self._events.run())
            self._parts.start(self._followup.run())
            if self._metrics.settings.refresh_seconds:
                self._parts.start(refresh_metrics(self._metrics, self._metrics.settings.refresh_seconds))
            self._parts.start(self._leader.certificates.follow())
            await self._parts.wait(stop)
            # at once not ready, and the lease is free long before the pod's grace period ends
            await asyncio.gather(self._leader.end(leading), server.stop())
            await self._followup.flush(_FLUSH_SECONDS)
        finally:
            await self._parts.end()
            await self._hosts.close()
            await self._events_client.close()
            await self._client.close()
        self._parts.check()

    def _emit(self, event: Event) -> None:
        self._events.emit(event)

    async def _serve(self) -> WebhookServer:
        settings = self._settings
        tls = self._leader.certificates.tls
        if tls is None:
            raise HostError("there is no certificate to listen with")
        targets = TargetPermissions(self._client, settings.background_account, lambda: self._cluster.kinds)
        reviews = DocumentReviews(
            lambda: self._cluster.kinds,
            settings.exceptions,
            targets.refusals,
            http_in_namespaces=settings.hosts.allows_http_in_namespaces,
        )
        server = WebhookServer(
            cluster=self._cluster,
            host=self._hosts.host(),
            tls=tls,
            health=self,
            observer=Observers(self._observer, self._events, self._followup),
            special={
                **reviews.paths(),
                **cleanup_paths(CLEANUP_PATH, reviews.review),
                HEARTBEAT_PATH: heartbeat_review(settings.namespace),
            },
            limits=settings.limits,
            defers=True,
        )
        await server.start(settings.address, settings.port, shares_port=settings.shares_port)
        self._server = server
        self._metrics.overdue = lambda: server.overdue
        return server
