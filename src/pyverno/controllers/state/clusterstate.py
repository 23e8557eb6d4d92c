"""The in-memory state of a cluster: kinds, namespaces, policies, roles, the ConfigMap; watches keep it up to date.

The webhook reads it as `ClusterFacts`; the leader's controllers react to its changes. It never writes to the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice, newest, slim
from pyverno.controllers.runtime.metricslifecycle import log_problems
from pyverno.controllers.runtime.recurring import RecurringFault
from pyverno.controllers.state.globalcontext import ENTRY_VERSIONS
from pyverno.controllers.state.hosts import HostFactory
from pyverno.controllers.state.policyinfo import PolicyInfo
from pyverno.controllers.state.policystore import Identity, PolicyStore, identity_of
from pyverno.controllers.state.roles import RoleIndex
from pyverno.controllers.state.servedkinds import ServedKinds
from pyverno.engine.request import User
from pyverno.errors import HostError, HostUnavailableError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import WATCHED_EXCEPTIONS, WATCHED_POLICIES
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metricsettings import MetricSettings
from pyverno.value import dataclass, field
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.policies import Policies
from pyverno.webhook.policyreviews import ExceptionSettings

if TYPE_CHECKING:
    from pyverno.telemetry.metrics import Metrics

__all__ = ["ClusterState", "StateSettings"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_CONFIG_MAPS: Final = GVR("", "v1", "configmaps")
_DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_BINDINGS: Final = [GVR("rbac.authorization.k8s.io", "v1", name) for name in ("rolebindings", "clusterrolebindings")]
_CHANGES: Final = {Notice.ADDED: "created", Notice.MODIFIED: "updated", Notice.DELETED: "deleted"}
_SETTLE_SECONDS: Final = 0.1
_RETRY_SHARE: Final = 1 / 15
_SILENT_SHARE: Final = 1 / 3
_LOOK_SHARE: Final = 2 / 3
"""Interval of discovery as a share of the bound: aggregated API servers come and go without a definition."""

_CATCH_UP_SECONDS: Final = 0.1
_WAIT_SECONDS: Final = 5.0

log = logging.getLogger("pyverno.admission")

Start = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Starts a task that runs as long as the controller."""


@dataclass(frozen=True, slots=True)
class StateSettings:
    """The watched resources of a cluster, and the permissions of policies.

    `namespace` is that of the controllers, with the ConfigMaps `config_map` and `metrics_config_map`. A cache that has
    been out of sync for `stale_seconds` makes the replica not ready. `background_account` is the user name of the
    controller that changes existing objects. Policies and exceptions are those of `policy_resources` and
    `exception_resources` that the cluster serves; without `required_resources` nothing is installed. `follows_roles`
    adds role bindings.
    """

    namespace: str = "kyverno"
    config_map: str = "kyverno"
    metrics_config_map: str = "kyverno-metrics"
    exceptions: ExceptionSettings = field(default_factory=ExceptionSettings)
    protects_managed: bool = False
    allows_http_in_namespaces: bool = False
    forces_ignore: bool = False
    background_account: str = ""
    stale_seconds: float = STALE_SECONDS
    policy_resources: tuple[GVR, ...] = WATCHED_POLICIES
    exception_resources: tuple[GVR, ...] = WATCHED_EXCEPTIONS
    required_resources: tuple[GVR, ...] = WATCHED_POLICIES[:2]
    follows_roles: bool = True


class ClusterState:
    """The cluster in memory (`webhook.admission.ClusterFacts`), and the informers that feed it."""

    def __init__(
        self,
        client: Client,
        settings: StateSettings,
        hosts: HostFactory,
        start: Start,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the client, the settings, the source of hosts, a function that starts tasks, and metrics."""
        self.configuration = Configuration()
        self.own_namespace = settings.namespace
        self.protects_managed = settings.protects_managed
        self.store = PolicyStore(
            settings.exceptions,
            http_in_namespaces=settings.allows_http_in_namespaces,
            forces_ignore=settings.forces_ignore,
            background_account=settings.background_account,
        )
        self._listeners: list[Callable[[], None]] = []
        self._status_listeners: list[Callable[[Identity], None]] = []
        self._client = client
        self._settings = settings
        self._hosts = hosts
        self._start = start
        self._metrics = metrics
        self._roles = RoleIndex()
        self._namespaces: Informer | None = None
        self._informers: dict[GVR, Informer] = {}
        self._running: dict[GVR, asyncio.Task[None]] = {}
        self._definitions: Informer | None = None
        self._served = ServedKinds(client, settings.stale_seconds)
        self._unsynced: tuple[Informer, ...] = ()
        self._definitions_changed = asyncio.Event()
        self._info: PolicyInfo | None = None
        if metrics is not None:
            metrics.instruments.gauge(METRICS["kyverno_cache_stale_seconds"], self.stale_seconds)
            metrics.instruments.gauge(METRICS["kyverno_globalcontext_entry_unavailable"], hosts.status.unavailable)
            self._info = PolicyInfo(
                metrics.instruments,
                lambda: tuple(self.store.compiled().values()),
                lambda: metrics.settings.namespaces,
            )

    # ------------------------------------------------------------------------------------------- what the webhook reads

    @property
    def kinds(self) -> KindTable:
        """The kinds that the cluster serves."""
        return self._served.kinds

    @property
    def policies(self) -> Policies:
        """The current policies; raises HostUnavailableError until every watch of policies has synced."""
        if self._unsynced:
            self._unsynced = tuple(informer for informer in self._unsynced if not informer.synced.is_set())
            if self._unsynced:
                raise HostUnavailableError(f"{self._unsynced[0].gvr.resource} are not known yet")
        return self.store.policies

    def namespace(self, name: str) -> JSONObject | None:
        """Return a namespace, None if there is none; raises HostError until the watch has synced."""
        if self._namespaces is None or not self._namespaces.synced.is_set():
            raise HostUnavailableError("the namespaces of the cluster are not known yet")
        return self._namespaces.get(name)

    @property
    def revision(self) -> str:
        """A resource version that the cluster had a moment ago."""
        return newest(each.revision for each in self._informers.values())

    def roles_of(self, user: User, namespace: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the roles (`ns:name`) and cluster roles that bindings give to a user."""
        return self._roles.roles_of(user, namespace)

    # ------------------------------------------------------------------------------------------------------- freshness

    def problem(self) -> str:
        """Return which cache has not synced or is stale; the empty text if none."""
        for informer in self._informers.values():
            problem = informer.problem()
            if problem:
                return problem
        return self._served.problem()

    def stale_seconds(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield for every watched resource how many seconds its cache has been stale; 0 while it is current."""
        for gvr, informer in tuple(self._informers.items()):
            yield (f"{gvr.resource}.{gvr.group}" if gvr.group else gvr.resource,), informer.stale_seconds

    @property
    def is_settled(self) -> bool:
        """Return whether all noticed changes of definitions have been processed."""
        return not self._definitions_changed.is_set()

    def has_seen(self, gvr: GVR, name: str, namespace: str, version: str) -> bool:
        """Return whether the watches have delivered this version of an object or a later one ("" = its deletion).

        Resources that are not watched count as seen.
        """
        informer = next((each for each in self._informers.values() if _same_objects(each.gvr, gvr)), None)
        if informer is None or (informer.gvr == _CONFIG_MAPS and namespace != self._settings.namespace):
            return True
        found = informer.get(name, namespace)
        if found is None or not version:
            return found is None and not version
        return int(found["metadata"]["resourceVersion"]) >= int(version)

    def policy_resource(self, body: JSONObject) -> GVR | None:
        """Return the resource of a policy's API version and kind; None when the cluster does not serve it."""
        for gvr in self._settings.policy_resources:
            info = self.kinds.by_resource(gvr)
            if info is not None and (info.api_version, info.kind) == (body.get("apiVersion"), body.get("kind")):
                return gvr
        return None

    def watches(self, gvr: GVR) -> bool:
        """Return whether a resource is watched."""
        return gvr in self._informers

    def watched(self, gvr: GVR, name: str, namespace: str) -> JSONObject | None:
        """Return the last known state of an object; None when it is gone or not watched."""
        return self._informers[gvr].get(name, namespace) if gvr in self._informers else None

    def current(self, body: JSONObject) -> JSONObject:
        """Return the last known state of a policy, with its status; the given one where it is not watched."""
        gvr, metadata = self.policy_resource(body), body["metadata"]
        found = None if gvr is None else self.watched(gvr, metadata["name"], metadata.get("namespace") or "")
        return body if found is None else found

    def listen(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever something changed that webhook configurations or status depend on."""
        self._listeners.append(listener)

    def listen_to_status(self, listener: Callable[[Identity], None]) -> None:
        """Call the listener with every policy whose status or metadata changed, but not its spec."""
        self._status_listeners.append(listener)

    # ------------------------------------------------------------------------------------------------------ the watches

    async def start(self) -> None:
        """Find out what the cluster serves, start the watches and wait until each has brought everything.

        Raises UsageError when the cluster lacks what we need, HostError when it cannot be reached.
        """
        await self._served.refresh()
        self._check_definitions()
        self._definitions = self._watch(_DEFINITIONS, self._take_definition, shrink=_without_schema)
        await self._wait_for(self._definitions)
        self._watch_everything()
        await self.wait_for_sync()
        known = {gvr.resource: len(informer) for gvr, informer in self._informers.items()}
        log.info("everything has arrived", extra={"fields": known})

    async def wait_for_sync(self) -> None:
        """Wait until every started watch has synced; the log names those that take long."""
        for informer in tuple(self._informers.values()):
            await self._wait_for(informer)

    async def _wait_for(self, informer: Informer) -> None:
        while not informer.synced.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_SECONDS):
                    await informer.synced.wait()
                return
            log.warning("still waiting", extra={"fields": {"for": informer.gvr.resource, "reason": informer.trouble}})

    async def catch_up(self) -> None:
        """Wait until the watches have delivered every policy that is in the cluster now.

        A new leader must not act on older state than its predecessor. Raises StatusError and HostError.
        """
        for gvr in self._settings.policy_resources:
            while gvr in self._informers:
                listed = await self._client.list(gvr)
                if all(self.has_seen(gvr, *_place_and_version(item)) for item in listed["items"]):
                    break
                await asyncio.sleep(_CATCH_UP_SECONDS)

    async def follow_definitions(self) -> None:
        """Look again at what the cluster serves when definitions of custom resources change, and now and then."""
        bound = self._settings.stale_seconds
        fault = RecurringFault(
            log, "what the cluster serves cannot be found out", "what the cluster serves is known again"
        )
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(bound * (_SILENT_SHARE if self._served.silent else _LOOK_SHARE)):
                    await self._definitions_changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            is_notified = self._definitions_changed.is_set()
            self._definitions_changed.clear()
            try:
                has_changed = await self._served.refresh()
            except (HostError, StatusError) as error:
                fault.failed(str(error))
                await asyncio.sleep(bound * _RETRY_SHARE)
                self._definitions_changed.set()
                continue
            fault.succeeded()
            self._watch_policies()
            await self._leave_what_is_gone()
            if is_notified or has_changed:
                self._wake()
                self._note_change()

    def _note_change(self) -> None:
        for listener in self._listeners:
            listener()

    def _wake(self) -> None:
        """Retry all failed watches at once: a missing kind may be served now."""
        self._hosts.entries.wake()
        for informer in self._informers.values():
            informer.wake()

    def _check_definitions(self) -> None:
        missing = [str(gvr) for gvr in self._settings.required_resources if self.kinds.by_resource(gvr) is None]
        if missing:
            raise UsageError(
                f"the cluster does not serve {', '.join(missing)}: "
                "install the definitions with `pyverno install --dry-run | kubectl apply --server-side -f -`"
            )

    def _watch_everything(self) -> None:
        self._namespaces = self._watch(_NAMESPACES, self._take_namespace)
        for bindings in _BINDINGS if self._settings.follows_roles else ():
            self._watch(bindings, self._take_binding)
        self._watch(_CONFIG_MAPS, self._take_config, namespace=self._settings.namespace)
        cached = self._hosts.config_maps()
        if cached is not None:
            self._start(cached.run())  # without it the API server is read, so nothing waits for it
        self._watch_policies()

    def _watch_policies(self) -> None:
        for gvr in (*self._settings.policy_resources, *self._settings.exception_resources):
            if gvr not in self._informers and self._exists(gvr):
                self._unsynced = (*self._unsynced, self._watch(gvr, self._take_policy, prepare=self.store.prepare))
        entries = self._hosts.entry_resource()
        if entries is not None and not any(_same_objects(entries, known) for known in self._informers):
            self._watch(entries, self._hosts.take_entry)

    def _exists(self, gvr: GVR) -> bool:
        """Return whether a kind is served, or defined and therefore about to be served.

        Discovery alone is not enough: it may lag behind, and policies that are not watched are not enforced.
        """
        if self.kinds.by_resource(gvr) is not None:
            return True
        found = None if self._definitions is None else self._definitions.get(f"{gvr.resource}.{gvr.group}")
        return found is not None and gvr.version in found["spec"]["served"]

    async def _leave_what_is_gone(self) -> None:
        """Stop watching kinds whose definition was deleted together with their objects."""
        takers = {
            **dict.fromkeys((*self._settings.policy_resources, *self._settings.exception_resources), self._take_policy),
            **dict.fromkeys(ENTRY_VERSIONS, self._hosts.take_entry),
        }
        for gvr, take in takers.items():
            if gvr not in self._informers or gvr in self._settings.required_resources or self._exists(gvr):
                continue
            informer, running = self._informers.pop(gvr), self._running.pop(gvr)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            self._unsynced = tuple(each for each in self._unsynced if each is not informer)
            bodies = tuple(informer.all())
            fields = {"resource": str(gvr), "objects": len(bodies)}
            log.warning("a definition is deleted, and its objects hold no longer", extra={"fields": fields})
            for body in bodies:
                take(Notice.DELETED, body)

    def _watch(
        self,
        gvr: GVR,
        listener: Callable[[Notice, JSONObject], None],
        *,
        namespace: str = "",
        shrink: Callable[[JSONObject], JSONObject] = slim,
        prepare: Callable[[JSONObject], Coroutine[Any, Any, None]] | None = None,
    ) -> Informer:
        bound = self._settings.stale_seconds
        informer = Informer(self._client, gvr, namespace=namespace, shrink=shrink, bound=bound, prepare=prepare)
        informer.listen(listener)
        self._informers[gvr] = informer
        self._running[gvr] = self._start(informer.run())
        return informer

    def _take_definition(self, _notice: Notice, _body: JSONObject) -> None:
        self._definitions_changed.set()

    def _take_namespace(self, notice: Notice, body: JSONObject) -> None:
        if self._metrics is not None:
            self._metrics.note_namespace(body["metadata"]["name"], is_gone=notice is Notice.DELETED)

    def _take_binding(self, notice: Notice, body: JSONObject) -> None:
        if notice is Notice.DELETED:
            self._roles.remove(body)
        else:
            self._roles.put(body)

    def _take_config(self, notice: Notice, body: JSONObject) -> None:
        name = body["metadata"]["name"]
        if name == self._settings.metrics_config_map and self._metrics is not None:
            self._metrics.settings = MetricSettings.read({} if notice is Notice.DELETED else body.get("data") or {})
            log_problems(self._metrics.settings.problems)
        if name != self._settings.config_map:
            return
        self.configuration = Configuration.read({} if notice is Notice.DELETED else body.get("data") or {})
        log_problems(self.configuration.problems)
        self._note_change()

    def _take_policy(self, notice: Notice, body: JSONObject) -> None:
        before = self.store.changes
        if notice is Notice.DELETED:
            compiled = self.store.remove(body)
        else:
            compiled = self.store.put(body)
            for error in compiled.errors:
                fields = {"policy": body["metadata"]["name"], "error": f"{error.path}: {error.message}"}
                log.error("a policy is not valid", extra={"fields": fields})
        if self.store.changes == before:
            for listener in self._status_listeners:
                listener(identity_of(body))
        else:
            self._note_change()
            if log.isEnabledFor(logging.DEBUG):
                log.debug("a policy has changed", extra={"fields": self._change_fields(notice, body)})
            if compiled is not None and self._info is not None:
                self._info.note(compiled, _CHANGES[notice])

    def _change_fields(self, notice: Notice, body: JSONObject) -> JSONObject:
        """Return log fields that show which policies were known at the time of a response."""
        metadata = body["metadata"]
        key = "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)
        version = metadata.get("resourceVersion", "")
        return {"policy": key, "change": notice, "resourceVersion": version, "known": len(self.store.compiled())}


def _same_objects(one: GVR, other: GVR) -> bool:
    """Return whether two resources are versions of the same one."""
    return (one.group, one.resource) == (other.group, other.resource)


def _without_schema(body: JSONObject) -> JSONObject:
    """Keep the identity, generation and served versions of a definition: schemas can be a megabyte."""
    metadata = body.get("metadata") or {}
    kept = {key: metadata.get(key) for key in ("name", "uid", "resourceVersion", "generation")}
    versions = (body.get("spec") or {}).get("versions") or ()
    served = [version.get("name") for version in versions if version.get("served")]
    return {
        "apiVersion": body.get("apiVersion"),
        "kind": body.get("kind"),
        "metadata": kept,
        "spec": {"served": served},
    }


def _place_and_version(body: JSONObject) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return metadata["name"], metadata.get("namespace") or "", metadata["resourceVersion"]
