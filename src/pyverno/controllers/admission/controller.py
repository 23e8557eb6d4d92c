"""The admission controller: the webhook server, the watches that feed it, and the leader's controllers.

It assembles the parts and keeps them running; see `state/clusterstate.py` and `leader.py`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pyverno.cluster.access import Access
from pyverno.controllers.admission.followup import Followup
from pyverno.controllers.admission.leader import AdmissionLeader
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.admissionpolicies.reconciler import check_mutating
from pyverno.controllers.certificates.handshake import OwnHandshake
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.reads import author_reads
from pyverno.controllers.state.deletionpermissions import DeletionPermissions
from pyverno.controllers.state.foundation import Foundation
from pyverno.controllers.state.permissions import ReadPermissions, TargetPermissions
from pyverno.controllers.state.typechecks import cel_type_warnings
from pyverno.controllers.webhooks.fixed import CLEANUP_PATH
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.report.seals import ReportSeals
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observer, Observers
from pyverno.webhook.cleanupreviews import cleanup_paths
from pyverno.webhook.heartbeat import HEARTBEAT_PATH, heartbeat_review
from pyverno.webhook.policyreviews import DocumentReviews
from pyverno.webhook.server import Health, WebhookServer

__all__ = ["AdmissionController", "AdmissionSettings"]

_FLUSH_SECONDS: Final = 10.0
"""Together with the linger and drain times of the server, this is shorter than the pod's grace period."""


class AdmissionController:
    """Runs until it is stopped, or until one of its parts ends unexpectedly."""

    def __init__(
        self,
        access: Access,
        settings: AdmissionSettings,
        observer: Observer,
        metrics: Metrics | None = None,
        peers: Health | None = None,
    ) -> None:
        """Take the access to the cluster, the settings, an observer of responses, and metrics.

        `peers` reports on the other processes of this replica, which is ready when all of them are.
        """
        self._settings = settings
        self._peers = peers
        self._observer = observer
        self._foundation = foundation = Foundation(access, settings, metrics, reads=author_reads)
        self._client, self._cluster, self._hosts = foundation.client, foundation.state, foundation.hosts
        self._metrics = metrics = foundation.metrics
        self._leader = AdmissionLeader(
            self._client,
            settings.leader,
            self._cluster,
            metrics,
            (self._hosts.status.controller, self._hosts.record_keys.controller(metrics)),
        )
        self._followup = Followup(
            self._client,
            settings.followup,
            self._cluster,
            foundation.events,
            observer,
            host=self._hosts.host,
            seals=ReportSeals(lambda: self._hosts.record_keys.keys),
            metrics=metrics,
        )
        self._server: WebhookServer | None = None
        self._handshake = OwnHandshake(settings.certificates.server_name, lambda: self._leader.certificates.bundle)

    @property
    def ready(self) -> asyncio.Event:
        """Set when the webhooks are in place for the first time."""
        return self._leader.ready

    @property
    def is_settled(self) -> bool:
        """Return whether this replica leads and has processed all changes that its watches delivered."""
        return self._leader.is_settled

    @property
    def is_idle(self) -> bool:
        """Return whether all reports, events and UpdateRequests of sent responses are written."""
        return self._followup.is_idle

    def problem(self) -> str:
        """Return why this replica is not ready: a problem of this process or of those that share its port."""
        return self.own_problem() or (self._peers.problem() if self._peers is not None else "")

    def own_problem(self) -> str:
        """Return why this process is not ready: missing or stale caches, an expired certificate."""
        if self._server is None:
            return "the port is not open yet"
        return self._cluster.problem() or self._leader.certificates.problem() or self._handshake.problem()

    def has_seen(self, gvr: GVR, name: str, namespace: str, version: str) -> bool:
        """Return whether the watches have delivered this version of an object or a later one ("" = its deletion).

        Resources that are not watched count as seen.
        """
        return self._cluster.has_seen(gvr, name, namespace, version)

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, shut down gracefully.

        Raises UsageError when the cluster lacks required definitions, HostError when it cannot be reached at the start
        or a part ends unexpectedly.
        """
        foundation = self._foundation
        start = foundation.parts.start
        try:
            await foundation.begin()
            if self._settings.generates_mutating:
                check_mutating(self._cluster.kinds)
            await self._leader.certificates.start()
            await self._hosts.record_keys.start()
            server = await self._serve()
            start(self._handshake.run(self._settings.address, server.port))
            leading = start(self._leader.campaign())
            start(self._followup.run())
            start(self._hosts.record_keys.follow())
            start(self._leader.certificates.follow())
            foundation.follow()
            await foundation.parts.wait(stop)
            # unready at once, and the lease is released long before the pod's grace period ends
            await asyncio.gather(self._leader.end(leading), server.stop())
            await self._followup.flush(_FLUSH_SECONDS)
        finally:
            await foundation.end()
        foundation.parts.check()

    async def _serve(self) -> WebhookServer:
        settings = self._settings
        tls = self._leader.certificates.tls
        if tls is None:
            raise HostError("there is no certificate to listen with")
        targets = TargetPermissions(self._client, settings.background_account, lambda: self._cluster.kinds)
        deletions = DeletionPermissions(self._client, settings.cleanup_account, lambda: self._cluster.kinds)
        rights = AuthorRights(self._client, lambda: self._cluster.kinds, settings.rights)
        reading = ReadPermissions(self._client, settings.reports_account)

        async def advice(policy: ClusterPolicy) -> tuple[str, ...]:
            kinds = self._cluster.kinds
            return (
                *await reading.unreadable(policy, kinds),
                *await cel_type_warnings(self._client, policy, kinds),
            )

        reviews = DocumentReviews(
            lambda: self._cluster.kinds,
            settings.exceptions,
            targets.refusals,
            advice=advice,
            missing=deletions.missing,
            rights=rights.refusals,
            http_in_namespaces=settings.hosts.allows_http_in_namespaces,
        )
        server = WebhookServer(
            cluster=self._cluster,
            host=self._hosts.host(),
            tls=tls,
            health=self,
            observer=Observers(self._observer, self._foundation.events, self._followup),
            special={
                **reviews.paths(),
                **cleanup_paths(CLEANUP_PATH, reviews.review, rights.may_delete),
                HEARTBEAT_PATH: heartbeat_review(settings.namespace),
            },
            limits=settings.limits,
            defers=True,
        )
        await server.start(settings.address, settings.port, shares_port=settings.shares_port)
        self._server = server
        self._metrics.overdue = lambda: server.overdue
        return server
