"""The controllers of the leading replica: webhooks, admission policies, status, certificates.

Webhook configurations are written first, then admission policies, then status. This order keeps a policy evaluated by
the webhook until the API server has its copy, and after that copy is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.controllers.admission.settings import LeaderSettings
from pyverno.controllers.admission.statusreconciler import PolicyStatus, Round
from pyverno.controllers.admissionpolicies.reconciler import GeneratedPolicies, Generation
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.controllers.runtime.heartbeat import Heartbeat
from pyverno.controllers.runtime.leader import Leader, Runnable
from pyverno.controllers.runtime.owndeployment import OwnDeployment
from pyverno.controllers.runtime.reconcile import Controller, LoopSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.webhooks.reconciler import WebhookReconciler
from pyverno.controllers.webhooks.sources import Endpoint
from pyverno.errors import HostError
from pyverno.kube.status import StatusError
from pyverno.telemetry.metrics import Metrics

__all__ = ["AdmissionLeader"]

_FAREWELL_SECONDS: Final = 15.0
_BACKOFF: Final = Backoff(first=1.0, longest=10.0)
_KEY: Final = "all"

log = logging.getLogger("pyverno.admission")


class AdmissionLeader:
    """Waits for the lease and runs the leader's controllers while it holds it."""

    def __init__(
        self,
        client: Client,
        settings: LeaderSettings,
        state: ClusterState,
        metrics: Metrics,
        controllers: Iterable[Runnable] = (),
    ) -> None:
        """Take the settings, the cluster state, and further controllers that run while this replica leads.

        Nothing is written before `campaign`.
        """
        self.ready = asyncio.Event()
        """Set when the webhooks are in place for the first time."""
        self._settings = settings
        self._state = state
        self._heartbeat = Heartbeat(client, settings.namespace)
        self._deployment = OwnDeployment(client, settings.namespace, "" if settings.server else settings.deployment)
        self._webhooks = WebhookReconciler(
            client,
            state,
            self._endpoint,
            settings.webhooks,
            hindrance=self._hindrance,
            resync_seconds=settings.resync_seconds,
            metrics=metrics,
        )
        self._webhooks.listen(self._note_placed)
        self.certificates = ServingCertificates(
            client, settings.certificates, self._webhooks, metrics, settings.clients
        )
        self._generating = GeneratedPolicies(
            client, validating=settings.generates_validating, mutating=settings.generates_mutating
        )
        self._generated: Mapping[tuple[str, str], Generation] = {}
        self._admission_policies: Controller[str] = Controller(
            "admissionpolicy-generator", self._generate, settings=LoopSettings(backoff=_BACKOFF), metrics=metrics
        )
        self._status = PolicyStatus(client, state, settings.reports_account, metrics)
        times = LeaseTimes.of_retry(settings.lease_retry)
        self._leader = Leader(
            LeaderElection(client, "kyverno", settings.namespace, settings.identity, times),
            (
                *controllers,
                self._heartbeat.controller(self._webhooks.restore, metrics),
                self._webhooks.controller,
                self._admission_policies,
                self._status.controller,
                self.certificates.controller,
            ),
            prepare=self._begin_term,
            retry_seconds=settings.lease_retry,
        )

    @property
    def is_settled(self) -> bool:
        """Return whether this replica leads and has processed all changes that its watches delivered."""
        following = (self._webhooks.controller, self._admission_policies, self._status.controller)
        return self._state.is_settled and all(each.is_idle for each in following)

    async def campaign(self) -> None:
        """Lead whenever this replica holds the lease; requests are served with or without it."""
        await self._leader.campaign()

    async def end(self, campaign: asyncio.Task[None]) -> None:
        """Stop leading, delete the webhooks if no replica follows, and release the lease."""
        was_leader = self._leader.is_leader
        campaign.cancel()
        await asyncio.gather(campaign, return_exceptions=True)
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                if (self._settings.removes_webhooks and was_leader) or await self._deployment.is_going():
                    await self._heartbeat.remove()
                    await self._webhooks.writer.remove_all()
        except (HostError, StatusError, TimeoutError) as error:
            log.warning("the webhooks are left as they are", extra={"fields": {"error": str(error)}})
        await self._leader.release()

    async def _begin_term(self) -> None:
        """Reset the state of an earlier term, and send a heartbeat; its controller retries a failed one."""
        self._webhooks.begin()
        self._status.begin()
        with suppress(HostError, StatusError):
            await self._heartbeat.beat()

    def _note_placed(self) -> None:
        self._admission_policies.add(_KEY)

    async def _generate(self, _key: str) -> None:
        """Write the admission policies of the configured policies, then queue their status."""
        placed = self._webhooks.placed
        if placed is None:
            return
        self._generated = await self._generating.reconcile(placed.used, placed.kinds)
        self._status.write(Round(placed.compiled, placed.refused, self._generated))
        self.ready.set()

    async def _hindrance(self) -> str:
        """Return why webhooks must not be written now: a rollout is under way, or calls may not reach this replica."""
        if await self._deployment.is_rolling():
            return "the replicas are being replaced"
        return await self._heartbeat.problem()

    def _endpoint(self) -> Endpoint:
        settings = self._settings
        bundle = self.certificates.bundle
        return Endpoint(settings.service, settings.namespace, settings.service_port, settings.server, bundle)
