"""The admission controller: a webhook server, the watches that feed it, and what only the leader of the replicas does.

It puts the parts together and keeps them running. A part that breaks is started again or stops the process, which is
better than answering from what is no longer true. This module must never judge a request.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.cluster.informer import Informer, Notice, slim
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.compiler.compile import Compiled
from pyverno.controllers.certificates import CertificateSettings
from pyverno.controllers.events import Events, EventSettings
from pyverno.controllers.generatedpolicies import GeneratedPolicies, Generation, with_generation
from pyverno.controllers.permissions import ReadPermissions, ScannedPolicy, TargetPermissions
from pyverno.controllers.policyinfo import PolicyInfo
from pyverno.controllers.policystore import EXCEPTION_KINDS, POLICY_KINDS, PolicyStore
from pyverno.controllers.roles import RoleIndex
from pyverno.controllers.servingcertificates import ServingCertificates
from pyverno.controllers.status import status_of, status_patch
from pyverno.controllers.surroundings import Surroundings, SurroundingSettings
from pyverno.controllers.webhookconfigurations import Endpoint, Settings, Sources, configurations
from pyverno.controllers.webhooks import WebhookController, document_configurations
from pyverno.engine.request import User
from pyverno.errors import HostError, HostUnavailableError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.value import dataclass, field
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.documents import DocumentReviews, ExceptionSettings
from pyverno.webhook.metricsettings import MetricSettings
from pyverno.webhook.observers import Observers
from pyverno.webhook.policies import Policies
from pyverno.webhook.server import Limits, Observer, WebhookServer

if TYPE_CHECKING:
    from pyverno.webhook.metrics import Metrics

__all__ = ["AdmissionController", "AdmissionSettings"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_ROLE_BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "rolebindings")
_CLUSTER_ROLE_BINDINGS: Final = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_REQUIRED: Final = (POLICY_KINDS[0], POLICY_KINDS[1])
_CHANGES: Final = {Notice.ADDED: "created", Notice.MODIFIED: "updated", Notice.DELETED: "deleted"}
_SETTLE_SECONDS: Final = 0.1
_STALE_SECONDS: Final = 30.0
_RETRY_SECONDS: Final = 5.0

log = logging.getLogger("pyverno.admission")


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """What the flags of the admission controller say.

    `server` (`host:port`) is how the API server reaches us when we run outside of the cluster. `identity` names this
    replica among the others. `reports_account` is the user name of the service account that reports are made with:
    whether it may read what policies are about stands in their status. `background_account` is that of the controller
    that changes existing objects: policies with targets that it may not change are refused.
    """

    namespace: str = "kyverno"
    service: str = "kyverno-svc"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    address: str = ""
    port: int = 9443
    server: str = ""
    service_port: int = 443
    identity: str = field(default_factory=lambda: f"{os.uname().nodename}-{os.getpid()}")
    exceptions: ExceptionSettings = field(default_factory=ExceptionSettings)
    webhooks: Settings = field(default_factory=Settings)
    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    protects_managed: bool = False
    lease_retry: float = 2.0
    qps: float = 100
    burst: int = 200
    limits: Limits = field(default_factory=Limits)
    surroundings: SurroundingSettings = field(default_factory=SurroundingSettings)
    removes_webhooks: bool = False
    generates_validating: bool = True
    events: EventSettings = field(default_factory=EventSettings)
    reports_account: str = ""
    background_account: str = ""


class _Memory:
    """What the webhook knows of the cluster (`webhook.admission.World`), from the informers."""

    def __init__(self, settings: AdmissionSettings, store: PolicyStore, roles: RoleIndex) -> None:
        self.configuration = Configuration()
        self.kinds = KindTable()
        self.own_namespace = settings.namespace
        self.protects_managed = settings.protects_managed
        self.namespaces: Informer | None = None
        self._store = store
        self._roles = roles

    @property
    def policies(self) -> Policies:
        return self._store.policies

    def namespace(self, name: str) -> JSONObject | None:
        if self.namespaces is None or not self.namespaces.synced.is_set():
            raise HostUnavailableError("the namespaces of the cluster are not known yet")
        return self.namespaces.get(name)

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self._roles.roles_of(user, namespace)


class AdmissionController:
    """Runs until it is told to stop, or until it loses a lease that it held."""

    def __init__(
        self, access: Access, settings: AdmissionSettings, observer: Observer, metrics: Metrics | None = None
    ) -> None:
        """Take how the cluster is reached, the settings, who is told of answers, and metrics that tell of policies."""
        self._settings = settings
        self._observer = observer
        self._client = Client(access, qps=settings.qps, burst=settings.burst)
        self._store = PolicyStore(
            settings.exceptions, http_in_namespaces=settings.surroundings.allows_http_in_namespaces
        )
        self._roles = RoleIndex()
        self._metrics = metrics
        self._info: PolicyInfo | None = None
        if metrics is not None:
            self._info = PolicyInfo(lambda: self._store.compiled().values(), lambda: metrics.settings.namespaces)
            metrics.registry.register(self._info)
        self._memory = _Memory(settings, self._store, self._roles)
        self._surroundings = Surroundings(
            self._client, settings.surroundings, lambda: self._memory.kinds, lambda: self._is_leading
        )
        self._is_leading = False
        self._informers: dict[GVR, Informer] = {}
        self._parts: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._reason = ""
        self._changed = asyncio.Event()
        self._definitions_changed = asyncio.Event()
        self._certificates = ServingCertificates(self._client, settings.certificates, self._configure)
        self._configuring = asyncio.Lock()
        self._server: WebhookServer | None = None
        self._permissions = ReadPermissions(self._client, settings.reports_account)
        self._events = Events(
            self._client, settings.events, configuration=lambda: self._memory.configuration, uid_of=self._store.uid_of
        )
        self._generating = GeneratedPolicies(self._client, validating=settings.generates_validating)
        self._generated: Mapping[tuple[str, str], Generation] = {}
        self._configured = False
        self._is_written = False
        self.ready = asyncio.Event()
        """Set when the webhooks are in place for the first time."""

    # ------------------------------------------------------------------------------------------------------- health

    def problem(self) -> str:
        """Return why requests should go elsewhere: caches that are not there or stale, a certificate that ended."""
        for gvr, informer in self._informers.items():
            if not informer.synced.is_set():
                return f"{gvr.resource} are not known yet"
            if informer.stale_seconds > _STALE_SECONDS:
                return f"{gvr.resource} have not been heard of for {informer.stale_seconds:.0f} seconds"
        return self._certificates.problem()

    @property
    def is_settled(self) -> bool:
        """Tell whether this replica leads and has written everything that follows from what its watches brought."""
        return self._is_written and not self._changed.is_set() and not self._definitions_changed.is_set()

    def has_seen(self, gvr: GVR, name: str, namespace: str, version: str) -> bool:
        """Tell whether the watches have brought an object in this version or a later one, or with "" that it is gone.

        What is not watched is taken as seen.
        """
        informer = next((each for each in self._informers.values() if _same_objects(each.gvr, gvr)), None)
        if informer is None or (informer.gvr == _CONFIG_MAPS and namespace != self._settings.namespace):
            return True
        found = informer.get(name, namespace)
        if found is None or not version:
            return found is None and not version
        return int(found["metadata"]["resourceVersion"]) >= int(version)

    # ---------------------------------------------------------------------------------------------------------- run

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks what we need, HostError when it can not be reached at the start or when
        a part of us ends by itself.
        """
        try:
            self._memory.kinds = await discover(self._client)
            self._check_definitions()
            self._watch_everything()
            await asyncio.gather(*(informer.synced.wait() for informer in self._informers.values()))
            await self._certificates.start()
            await self._serve()
            election = self._election()
            leading = self._start(self._campaign(election))
            self._start(self._follow())
            self._start(self._events.run())
            self._start(self._certificates.follow())
            waiting = asyncio.ensure_future(stop.wait())
            breaking = asyncio.ensure_future(self._broken.wait())
            await asyncio.wait((waiting, breaking), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            breaking.cancel()
            await self._end(election, leading)
        finally:
            for part in self._parts:
                part.cancel()
            await asyncio.gather(*self._parts, return_exceptions=True)
            await self._surroundings.close()
            await self._client.close()
        if self._broken.is_set():
            raise HostError(f"a part of the controller ended: {self._reason}")

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a part that is to run as long as we do."""
        part = asyncio.create_task(work)
        self._parts.add(part)
        part.add_done_callback(self._note_end)
        return part

    def _note_end(self, part: asyncio.Task[None]) -> None:
        if not part.cancelled():
            error = part.exception()
            self._reason = str(error or "it had nothing more to do")
            log.error("a part of the controller ended", exc_info=error)
            self._broken.set()

    async def _campaign(self, election: LeaderElection) -> None:
        """Lead whenever the lease is ours; without it (the API server is away, say) requests are still answered."""
        while True:
            await election.run(self._lead)
            log.warning("the lease is lost")
            await asyncio.sleep(self._settings.lease_retry)

    async def _end(self, election: LeaderElection, leading: asyncio.Task[None]) -> None:
        was_leader = election.is_leader
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)
        if self._settings.removes_webhooks and was_leader:
            with suppress(HostError, StatusError):
                await WebhookController(self._client).remove_all()
        await election.release()
        if self._server is not None:
            await self._server.stop()

    def _check_definitions(self) -> None:
        missing = [str(gvr) for gvr in _REQUIRED if self._memory.kinds.by_resource(gvr) is None]
        if missing:
            raise UsageError(
                f"the cluster does not serve {', '.join(missing)}: "
                "install the definitions with `pyverno install --dry-run | kubectl apply --server-side -f -`"
            )

    # ---------------------------------------------------------------------------------------------------- the watches

    def _watch_everything(self) -> None:
        self._memory.namespaces = self._watch(_NAMESPACES, lambda _notice, _body: None)
        self._watch(_DEFINITIONS, lambda _notice, _body: self._definitions_changed.set(), shrink=_without_schema)
        for bindings in (_ROLE_BINDINGS, _CLUSTER_ROLE_BINDINGS):
            self._watch(bindings, self._take_binding)
        self._watch(_CONFIG_MAPS, self._take_config, namespace=self._settings.namespace)
        cached = self._surroundings.config_maps()
        if cached is not None:
            self._start(cached.run())  # while it is not there the API server is asked, so nothing waits for it
        self._watch_policies()

    def _watch_policies(self) -> None:
        for gvr in (*POLICY_KINDS, *EXCEPTION_KINDS):
            if gvr not in self._informers and self._memory.kinds.by_resource(gvr) is not None:
                self._watch(gvr, self._take_policy)
        entries = self._surroundings.entry_resource()
        if entries is not None and not any(_same_objects(entries, known) for known in self._informers):
            self._watch(entries, self._surroundings.entries.take)

    def _watch(
        self,
        gvr: GVR,
        listener: Callable[[Notice, JSONObject], None],
        *,
        namespace: str = "",
        shrink: Callable[[JSONObject], JSONObject] = slim,
    ) -> Informer:
        informer = Informer(self._client, gvr, namespace=namespace, shrink=shrink)
        informer.listen(listener)
        self._informers[gvr] = informer
        self._start(informer.run())
        return informer

    def _take_binding(self, notice: Notice, body: JSONObject) -> None:
        if notice is Notice.DELETED:
            self._roles.remove(body)
        else:
            self._roles.put(body)

    def _take_config(self, notice: Notice, body: JSONObject) -> None:
        name = body["metadata"]["name"]
        if name == self._settings.metrics_config_map and self._metrics is not None:
            self._metrics.settings = MetricSettings.read({} if notice is Notice.DELETED else body.get("data") or {})
            self._tell_problems(self._metrics.settings.problems)
        if name != self._settings.config_map:
            return
        self._memory.configuration = Configuration.read({} if notice is Notice.DELETED else body.get("data") or {})
        self._tell_problems(self._memory.configuration.problems)
        self._changed.set()

    def _tell_problems(self, problems: Iterable[str]) -> None:
        for problem in problems:
            log.error("a setting of a ConfigMap can not be read", extra={"fields": {"problem": problem}})

    def _take_policy(self, notice: Notice, body: JSONObject) -> None:
        before = self._store.policies
        if notice is Notice.DELETED:
            compiled = self._store.remove(body)
        else:
            compiled = self._store.put(body)
            for error in compiled.errors:
                fields = {"policy": body["metadata"]["name"], "error": f"{error.path}: {error.message}"}
                log.error("a policy is not valid", extra={"fields": fields})
        if self._store.policies is not before:
            self._changed.set()
            if compiled is not None and self._info is not None:
                self._info.note(compiled, _CHANGES[notice])

    async def _follow(self) -> None:
        """Look again at what the cluster serves when definitions of custom resources change."""
        while True:
            await self._definitions_changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            self._definitions_changed.clear()
            try:
                self._memory.kinds = await discover(self._client)
            except (HostError, StatusError):
                self._definitions_changed.set()
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._watch_policies()
            self._changed.set()

    # ---------------------------------------------------------------------------------------------------- the server

    async def _serve(self) -> None:
        settings = self._settings
        tls = self._certificates.tls
        if tls is None:
            raise HostError("there is no certificate to listen with")
        targets = TargetPermissions(self._client, settings.background_account, lambda: self._memory.kinds)
        reviews = DocumentReviews(
            lambda: self._memory.kinds,
            settings.exceptions,
            targets.refusals,
            http_in_namespaces=settings.surroundings.allows_http_in_namespaces,
        )
        self._server = WebhookServer(
            world=self._memory,
            host=self._surroundings.host(),
            tls=tls,
            health=self,
            observer=Observers(self._observer, self._events),
            special=reviews.paths(),
            limits=settings.limits,
        )
        await self._server.start(settings.address, settings.port)

    # ---------------------------------------------------------------------------------------------------- the leader

    def _election(self) -> LeaderElection:
        settings = self._settings
        times = LeaseTimes.of_retry(settings.lease_retry)
        return LeaderElection(self._client, "kyverno", settings.namespace, settings.identity, times)

    async def _lead(self) -> None:
        """Do what only one replica may do: configurations, certificates and status."""
        self._changed.set()
        self._is_leading = True
        try:
            await self._lead_on()
        finally:
            self._is_leading = False

    async def _lead_on(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(self._reconcile))
            group.create_task(self._certificates.lead())

    async def _keep(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            try:
                await step()
            except (HostError, StatusError) as error:
                self._configured = False
                log.warning("a step of the leader failed", extra={"fields": {"error": str(error)}})
                self._changed.set()
                await asyncio.sleep(_RETRY_SECONDS)

    async def _reconcile(self) -> None:
        await self._changed.wait()
        self._is_written = False
        await asyncio.sleep(_SETTLE_SECONDS)
        self._changed.clear()
        await self._configure()
        self._configured = True
        self._generated = await self._generating.reconcile(self._store.in_use(), self._memory.kinds)
        await self._write_status()
        self._is_written = True
        self.ready.set()

    async def _configure(self) -> None:
        """Make the webhook configurations what policies, settings and certificates ask for."""
        controller = WebhookController(self._client)
        endpoint = self._endpoint()
        sources = Sources(
            legacy=self._store.legacy(),
            cel=self._store.cel(),
            kinds=self._memory.kinds,
            configuration=self._memory.configuration,
            endpoint=endpoint,
            settings=self._settings.webhooks,
        )
        async with self._configuring:
            for wanted in (
                *document_configurations(endpoint, self._settings.webhooks.timeout),
                *configurations(sources),
            ):
                await controller.apply(wanted)

    def _endpoint(self) -> Endpoint:
        settings = self._settings
        bundle = self._certificates.bundle
        return Endpoint(settings.service, settings.namespace, settings.service_port, settings.server, bundle)

    async def _write_status(self) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for compiled in tuple(self._store.compiled().values()):
            body = compiled.document.value
            gvr = self._policy_resource(body)
            if gvr is None or compiled.written is None:
                continue
            name, namespace = body["metadata"]["name"], body["metadata"].get("namespace") or ""
            found = self._informers[gvr].get(name, namespace) if gvr in self._informers else None
            wanted = status_of(compiled, is_configured=self._configured, now=now, missing=await self._missing(compiled))
            wanted = with_generation(wanted, compiled, self._generated)
            patch = status_patch((found or body).get("status") or {}, wanted)
            if patch is not None:
                with suppress(StatusError):  # it may be gone, or be changed again: then there is another round
                    await self._client.patch(gvr, name, patch, namespace, subresource="status")

    async def _missing(self, compiled: Compiled) -> tuple[str, ...]:
        written = compiled.written
        return await self._permissions.missing(written) if isinstance(written, ScannedPolicy) else ()

    def _policy_resource(self, body: JSONObject) -> GVR | None:
        for gvr in POLICY_KINDS:
            info = self._memory.kinds.by_resource(gvr)
            if info is not None and (info.api_version, info.kind) == (body.get("apiVersion"), body.get("kind")):
                return gvr
        return None


def _same_objects(one: GVR, other: GVR) -> bool:
    """Tell whether two resources are versions of the same one."""
    return (one.group, one.resource) == (other.group, other.resource)


def _without_schema(body: JSONObject) -> JSONObject:
    """Keep of a definition what tells it from its other states: schemas can be a megabyte."""
    metadata = body.get("metadata") or {}
    kept = {key: metadata.get(key) for key in ("name", "uid", "resourceVersion", "generation")}
    return {"apiVersion": body.get("apiVersion"), "kind": body.get("kind"), "metadata": kept}
