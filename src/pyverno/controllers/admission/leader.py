"""What only one of the replicas does: webhook configurations, admission policies, status, certificates.

It works while the lease is ours and stops before it could be another's. This module must never answer a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from pyverno.cluster.client import Client
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.admission.statusreconciler import PolicyStatus, Round
from pyverno.controllers.admissionpolicies.reconciler import GeneratedPolicies, Generation
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.controllers.runtime.heartbeat import Heartbeat
from pyverno.controllers.runtime.owndeployment import OwnDeployment
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.webhooks.fixed import cleanup_configurations, document_configurations
from pyverno.controllers.webhooks.registration import WebhookRegistration
from pyverno.controllers.webhooks.sources import Endpoint, PolicyKey, Sources
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.errors import HostError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.metrics import Metrics

__all__ = ["Leader"]

_SETTLE_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 5.0
_LATER_SECONDS: Final = 1.0
_FAREWELL_SECONDS: Final = 15.0
_CONTROLLERS: Final = ("webhook-controller", "admissionpolicy-generator", "status-controller")
"""What Kyverno calls the controllers whose work one round of the leader does."""

log = logging.getLogger("pyverno.admission")


class Leader:
    """The part of a replica that waits for the lease, and works while it has it."""

    def __init__(
        self,
        client: Client,
        settings: AdmissionSettings,
        world: ClusterState,
        metrics: Metrics,
        duties: Iterable[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        """Take the client, the settings, what is known of the cluster, what counts rounds, and further `duties`.

        Duties run while this replica leads. Nothing is written before `campaign`.
        """
        self._duties = tuple(duties)
        self._metrics = metrics
        self._failures = 0
        self.ready = asyncio.Event()
        """Set when the webhooks are in place for the first time."""
        self.certificates = ServingCertificates(
            client, settings.certificates, self._configure, metrics, settings.clients
        )
        self._client = client
        self._settings = settings
        self._world = world
        self._configuring = asyncio.Lock()
        self._heartbeat = Heartbeat(client, settings.namespace)
        self._deployment = OwnDeployment(client, settings.namespace, "" if settings.server else settings.deployment)
        self._disturbed = asyncio.Event()
        self._in_place: tuple[tuple[JSONObject, bool], ...] = ()
        self._webhooks = ConfigurationWriter(client)
        self._registration = WebhookRegistration(self._webhooks)
        self._refused: Mapping[PolicyKey, str] = {}
        self._status = PolicyStatus(client, world, settings.reports_account)
        self._generating = GeneratedPolicies(
            client, validating=settings.generates_validating, mutating=settings.generates_mutating
        )
        self._generated: Mapping[tuple[str, str], Generation] = {}
        self._configured = False
        self._is_written = False
        self._has_caught_up = False
        times = LeaseTimes.of_retry(settings.lease_retry)
        self._election = LeaderElection(client, "kyverno", settings.namespace, settings.identity, times)

    @property
    def is_settled(self) -> bool:
        """Tell whether this replica leads and has written everything that follows from what its watches brought."""
        return self._is_written and self._world.is_settled

    async def campaign(self) -> None:
        """Lead whenever the lease is ours; without it (the API server is away, say) requests are still answered."""
        while True:
            await self._election.run(self._lead)
            log.warning("the lease is lost")
            await asyncio.sleep(self._settings.lease_retry)

    async def end(self, campaign: asyncio.Task[None]) -> None:
        """Stop leading, take the webhooks away where nobody comes after us, and give the lease back."""
        was_leader = self._election.is_leader
        campaign.cancel()
        await asyncio.gather(campaign, return_exceptions=True)
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                if (self._settings.removes_webhooks and was_leader) or await self._deployment.is_going():
                    await self._heartbeat.remove()
                    await self._webhooks.remove_all()
        except (HostError, StatusError, TimeoutError) as error:
            log.warning("the webhooks are left as they are", extra={"fields": {"error": str(error)}})
        await self._election.release()

    async def _lead(self) -> None:
        """Do what only one replica may do: configurations, certificates and status."""
        self._world.changed.set()
        self._has_caught_up = False
        self._status.begin()
        async with asyncio.TaskGroup() as group:
            for duty in self._duties:
                group.create_task(duty())
            await self._beat_once()
            group.create_task(self._heartbeat.run(self._disturbed.set))
            group.create_task(self._keep(self._reconcile))
            group.create_task(self._keep(self._restore))
            group.create_task(self._status.keep())
            group.create_task(self.certificates.lead())
            for informer in self._webhooks.informers(self._disturbed.set):
                group.create_task(informer.run())

    async def _keep(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await step()
            except (HostError, StatusError) as error:
                self._configured = False
                self._failures += 1
                self._metrics.requeued(_CONTROLLERS[0], self._failures)
                log.warning("a step of the leader failed", extra={"fields": {"error": str(error)}})
                self._world.changed.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _reconcile(self) -> None:
        await self._world.changed.wait()
        self._is_written = False
        await asyncio.sleep(_SETTLE_SECONDS)
        self._world.changed.clear()
        await self._world.wait_until_whole()
        if not self._has_caught_up:
            await self._world.catch_up()
            self._has_caught_up = True
        for controller in _CONTROLLERS:
            self._metrics.reconciled(controller)
        problem = await self._hindrance()
        if problem:
            log.info("webhooks and status stay as they are for now", extra={"fields": {"reason": problem}})
            self._world.changed.set()
            await asyncio.sleep(_LATER_SECONDS)
            return
        placed = dict(self._world.store.compiled())
        await self._configure()
        self._configured = True
        self._generated = await self._generating.reconcile(self._world.store.in_use(), self._world.kinds)
        await self._status.write(Round(placed, self._configured, self._refused, self._generated))
        self._is_written = True
        self._failures = 0
        self.ready.set()

    async def _configure(self) -> None:
        """Make the webhook configurations what policies, settings and certificates ask for."""
        endpoint, general = self._endpoint(), self._world.configuration
        sources = Sources(
            legacy=self._world.store.legacy(),
            cel=self._world.store.cel(),
            kinds=self._world.kinds,
            configuration=general,
            endpoint=endpoint,
            settings=self._settings.webhooks,
        )
        problems: list[StatusError] = []
        async with self._configuring:
            documents = (
                *document_configurations(endpoint, general, self._settings.webhooks.timeout),
                *cleanup_configurations(endpoint, general),
            )
            for wanted in documents:
                try:
                    await self._webhooks.apply(wanted)
                except StatusError as error:  # one that is refused must not stop the others
                    problems.append(error)
            self._refused = await self._registration.register(sources)
            is_fixed = not self._settings.webhooks.updates
            self._in_place = (
                *((wanted, False) for wanted in documents),
                *((wanted, is_fixed) for wanted in self._registration.in_place.values()),
            )
        if problems:
            raise problems[0]

    async def _hindrance(self) -> str:
        """Return why webhooks should not be written now: replicas are being replaced, or nobody knows how we are."""
        if await self._deployment.is_rolling():
            return "the replicas are being replaced"
        return await self._heartbeat.problem()

    async def _beat_once(self) -> None:
        """Begin with a heartbeat; one that fails is tried again in a moment."""
        with suppress(HostError, StatusError):
            await self._heartbeat.beat()

    async def _restore(self) -> None:
        """Write again what somebody else changed or took away; nothing is computed for it."""
        await self._disturbed.wait()
        self._disturbed.clear()
        async with self._configuring:
            for wanted, is_fixed in self._in_place:
                await self._webhooks.apply(wanted, is_fixed=is_fixed)

    def _endpoint(self) -> Endpoint:
        settings = self._settings
        bundle = self.certificates.bundle
        return Endpoint(settings.service, settings.namespace, settings.service_port, settings.server, bundle)
