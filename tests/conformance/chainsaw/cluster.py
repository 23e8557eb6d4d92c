"""One cluster for many scenarios: a sandbox, further definitions, and the controllers as they are installed.

What a scenario leaves behind is taken away before the next one. This module must never know what a scenario expects.
"""

from __future__ import annotations

import asyncio
import faulthandler
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from kubesandbox import Sandbox
from kubesandbox.sandbox import Settings as SandboxSettings
from kubesandbox.storage.store import Key, Stored
from kubesandbox.types.resources import ResourceType
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.cleanup.controller import CleanupController
from pyverno.controllers.reports.controller import ReportsController
from pyverno.controllers.state.hosts import HostSettings
from pyverno.controllers.state.registries import RegistryFlags
from pyverno.controllers.webhooks.configurations import Settings
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.telemetry.observer import Observers
from pyverno.testing import CONTROLLERS, REPORTS, FurtherController, PolicySandbox, reports_settings
from pyverno.value import replace
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.conformance.images.world import image_world

__all__ = ["INSTALLATIONS", "Cluster", "running_cluster"]

T = TypeVar("T")
_NAMESPACE: Final = "kyverno"
_STANDARD: Final = {"exceptions": ExceptionSettings(enabled=True, namespace="*")}
_OPENREPORTS: Final = "openreports"
"""The installation whose reports are those of openreports.io."""
_MUTATING: Final = "standard,mutating-admission-policy-reports"
"""The installation whose scans evaluate MutatingAdmissionPolicies."""

INSTALLATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "standard": _STANDARD,
    "default": {"exceptions": ExceptionSettings(enabled=False, namespace="*")},
    "standard,generate-mutating-admission-policy": {**_STANDARD, "generates_mutating": True},
    _OPENREPORTS: _STANDARD,
    _MUTATING: _STANDARD,
    "standard,ttl": _STANDARD,
    "standard,sigstore-custom-tuf": _STANDARD,
    "standard,force-failure-policy-ignore": {**_STANDARD, "webhooks": Settings(forces_ignore=True)},
}
"""Installations of upstream's runs that we can make, and the settings of the controller that they mean."""
_USER: Final = f"system:serviceaccount:{_NAMESPACE}:kyverno-{{}}-controller"
_CHANGED: Final = [
    *("configmaps", "networkpolicies", "resourcequotas", "secrets", "roles", "rolebindings", "limitranges"),
    *("clusterroles", "clusterrolebindings", "namespaces", "nodes", "nodes/status", "pods"),
]
"""Resources that upstream's test installation lets the background controller change."""
_CHANGE: Final = ["create", "update", "patch", "delete", "get", "list", "watch"]
_CLEANED: Final = ["list", "delete"]
"""Verbs on Pods that it grants to the cleanup controller."""
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "local-path-storage"
_LABELS: Final = {"app": "local-path-provisioner"}
_PROVISIONER: Final[JSONObject] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "local-path-provisioner", "namespace": _STORAGE},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {"containers": [{"name": "provisioner", "image": "registry.example.com/provisioner:v1"}]},
        },
    },
}
"""The workload that every new cluster of upstream's runs (kind) has outside of filtered namespaces: scans report it."""
_OWN: Final = frozenset(
    {
        "events",
        "leases.coordination.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Kinds that controllers write at any time."""
_POLICY_GROUPS: Final = ("kyverno.io", "policies.kyverno.io", "admissionregistration.k8s.io")
_LAST: Final = ("namespaces", "customresourcedefinitions.apiextensions.k8s.io")
_SETTLE_SECONDS: Final = 10.0
_GONE_SECONDS: Final = 20.0
_QUIET_SECONDS: Final = 0.5
_MOST_SECONDS: Final = 600.0
_END_SECONDS: Final = 60.0
"""Limits for a scenario and for the shutdown of a cluster, far above what any of them needs."""
_POLL: Final = 0.02
_CLOCK_LOOKS: Final = 3
_CLOCK_SECONDS: Final = 0.06
_DUE_SECONDS: Final = 2.0


class Cluster:
    """A sandbox with the controller in one event loop."""

    def __init__(self, definitions: Path | None, installation: str, version: str, kubelet: bool) -> None:
        """Take the folder of further definitions, the installation, the version of Kubernetes, and whether pods run."""
        world = image_world()
        registries = RegistryFlags(allows_http=True, trusted_root=world.trusted_root)
        settings = AdmissionSettings(
            **INSTALLATIONS[installation],
            hosts=HostSettings(registries=registries, registry_connector=world.connector),
            port=0,
            lease_retry=60,
            qps=0,
            reports_account=_USER.format("reports"),
            background_account=_USER.format("background"),
            cleanup_account=_USER.format("cleanup"),
        )
        self._definitions = definitions
        self._shift = timedelta()
        self.moves_clock = False
        """Set if waits of a scenario take their full time, rather than a fraction."""
        self.replaced: set[str] = set()
        """Texts of the scenario that were replaced, because they belong to images that are signed again."""
        self._has_ttl = "ttl" in installation
        self._sandbox = Sandbox(SandboxSettings(kube_version=version, kubelet=kubelet, clock=self._now))
        self._installed = PolicySandbox(
            self._sandbox, Observers(), settings, further=tuple(_controllers(installation)), as_installed=True
        )
        self._first: dict[Key, Stored] = {}
        self.client: Client

    async def start(self) -> None:
        """Start everything; when this returns, the webhooks are in place."""
        await self._installed.__aenter__()
        self.client = Client(load_kubeconfig(self._sandbox.kubeconfig, environment={}), qps=0, agent="chainsaw")
        for body in self._further():
            await self.client.create(self.type_of(body).gvr, body, body["metadata"].get("namespace", ""))
        await self._unchanged()
        self._first = dict(self._all())

    async def stop(self) -> None:
        """Stop everything."""
        await self.client.close()
        await self._installed.__aexit__(None, None, None)

    def _further(self) -> Iterator[JSONObject]:
        """Yield the objects that are installed besides those of the admission controller."""
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "kyverno:background-controller:tests",
                "labels": {"rbac.kyverno.io/aggregate-to-background-controller": "true"},
            },
            "rules": [{"apiGroups": ["*"], "resources": _CHANGED, "verbs": _CHANGE}],
        }
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "kyverno:cleanup-controller:tests",
                "labels": {"rbac.kyverno.io/aggregate-to-cleanup-controller": "true"},
            },
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [*_CLEANED, *["watch"] * self._has_ttl]}],
        }
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _STORAGE}}
        yield _PROVISIONER
        for path in sorted(self._definitions.glob("*.yaml") if self._definitions else ()):
            for document in expand_lists(load_documents(path.read_bytes(), file=path.name)):
                yield document.value

    # ------------------------------------------------------------------------------------------------------- looking

    def type_of(self, body: JSONObject) -> ResourceType:
        """Return the resource type of a document; an unknown kind raises StatusError with the text of a client."""
        group, version = parse_api_version(str(body.get("apiVersion")))
        kind = str(body.get("kind"))
        found = self._sandbox.server.table.by_kind(GVK(group, version, kind))
        if found is None:
            raise StatusError(404, "NotFound", f'no matches for kind "{kind}" in version "{body.get("apiVersion")}"')
        return found

    def _all(self) -> Iterator[tuple[Key, Stored]]:
        store = self._sandbox.server.store
        for resource in {each.key for each in self._sandbox.server.table}:
            if resource not in _OWN:
                yield from ((state.key, state) for state in store.all(resource))

    @property
    def kubeconfig(self) -> str:
        """The path of the administrator's kubeconfig."""
        return self._sandbox.kubeconfig

    def read(self, path: Path) -> bytes:
        """Return the content of a file of the corpus, with what belongs to our images in it."""
        found = image_world().rewrite(path.read_text())
        self.replaced |= found.replaced
        return found.text.encode()

    def as_installed(self, body: JSONObject) -> JSONObject:
        """Return an object as it is where the controller runs behind its Service, and not at an address of ours."""
        hooks = body.get("webhooks")
        if not isinstance(hooks, list) or not str(body.get("kind")).endswith("WebhookConfiguration"):
            return body
        return {**body, "webhooks": [{**hook, "clientConfig": _client_config(hook["clientConfig"])} for hook in hooks]}

    # ------------------------------------------------------------------------------------------------------ settling

    async def quiet(self) -> None:
        """Wait until the controller has finished the work that other clients' writes cause."""
        await self._installed.settle()

    async def settled(self, found: ResourceType, body: JSONObject, *, is_gone: bool = False) -> None:
        """Wait until the controller has seen a write and has finished the work that it causes."""
        metadata = body["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or ""
        version = "" if is_gone else metadata.get("resourceVersion", "")
        await self._until(lambda: self._installed.controller.has_seen(found.gvr, name, namespace, version))
        await self._until(lambda: self._installed.controller.is_settled)

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._shift

    async def pass_time(self, seconds: float) -> None:
        """Move the clock of the cluster, and wait until all work due by then is done or scheduled for a retry."""
        self._shift += timedelta(seconds=seconds)
        controller = self._installed.running["cleanup"]
        assert isinstance(controller, CleanupController)
        for _ in range(_CLOCK_LOOKS):
            await asyncio.sleep(_CLOCK_SECONDS)  # what was read before is forgotten
            await controller.look_at_clock()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DUE_SECONDS):
                await asyncio.sleep(_CLOCK_SECONDS)
                while not controller.is_idle:
                    await asyncio.sleep(_POLL / 4)

    async def _unchanged(self) -> None:
        """Wait until the controllers of the cluster have made what belongs to its first objects."""
        store, seen = self._sandbox.server.store, 0
        while store.revision != seen:
            seen = store.revision
            await asyncio.sleep(_QUIET_SECONDS)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(_SETTLE_SECONDS):
            while not holds():
                await asyncio.sleep(_POLL / 4)

    # ------------------------------------------------------------------------------------------------------ cleaning

    async def restore(self) -> None:
        """Restore the cluster to its state after the start: policies are deleted first, namespaces last."""
        local = self._sandbox.client()
        await self._until(lambda: self._installed.controller.is_idle)
        for phase in (self._policies, self._others, self._last):
            end = time.monotonic() + _GONE_SECONDS
            while keys := [key for key, _ in self._all() if key not in self._first and phase(key)]:
                if time.monotonic() > end:
                    raise TimeoutError(f"these objects do not go away: {keys[:5]}")
                for key in keys:
                    await _delete(local, key)
                await asyncio.sleep(_POLL)
            if phase == self._policies:
                await asyncio.sleep(_POLL)
                await self._until(lambda: self._installed.controller.is_settled)
                await self._until(lambda: all(each.is_idle for each in self._installed.running.values()))
        for key, state in self._first.items():
            await self._put_back(local, key, state)

    def _policies(self, key: Key) -> bool:
        return key.resource.partition(".")[2] in _POLICY_GROUPS

    def _others(self, key: Key) -> bool:
        # what is in a new namespace goes with it
        stays = not key.namespace or Key("namespaces", "", key.namespace) in self._first
        return key.resource not in _LAST and stays

    def _last(self, key: Key) -> bool:
        return key.resource in _LAST

    async def _put_back(self, local: Any, key: Key, state: Stored) -> None:
        now = self._sandbox.server.store.get(key)
        if now is state:
            return
        if now is None:
            body = {**state.body, "metadata": {**state.body["metadata"], "resourceVersion": ""}}
            await local.create(key.resource, body)
        elif _essence(now.body) != _essence(state.body):
            # it may have been deleted and made again
            present = {key: now.body["metadata"][key] for key in ("uid", "resourceVersion")}
            body = {**state.body, "metadata": {**state.body["metadata"], **present}}
            await local.update(key.resource, body)


def _controllers(installation: str) -> Iterator[FurtherController]:
    ours: dict[str, Any] = {_OPENREPORTS: {"uses_openreports": True}, _MUTATING: {"mutating": True}}
    changes = ours.get(installation)

    def make_reports(access: Access, settings: AdmissionSettings) -> ReportsController:
        return ReportsController(access, replace(reports_settings(settings), **changes or {}))

    for each in CONTROLLERS:
        yield replace(REPORTS, make=make_reports) if each is REPORTS and changes else each


def _client_config(config: JSONObject) -> JSONObject:
    if "url" not in config:
        return config
    rest = {key: value for key, value in config.items() if key != "url"}
    service = {"name": "kyverno-svc", "namespace": _NAMESPACE, "path": urlsplit(config["url"]).path, "port": 443}
    return {**rest, "service": service}


def _essence(body: JSONObject) -> object:
    metadata = body["metadata"]
    rest = {key: value for key, value in body.items() if key not in ("metadata", "status")}
    return rest, metadata.get("labels"), metadata.get("annotations")


async def _delete(local: Any, key: Key) -> None:
    try:
        found = local.get(key.resource, key.name, key.namespace)
        if found is not None and found["metadata"].get("finalizers") and key.resource not in _LAST:
            await local.patch(key.resource, key.name, key.namespace, {"metadata": {"finalizers": None}})
        await local.delete(key.resource, key.name, key.namespace, propagation="Background", grace=0)
    except StatusError as error:
        if error.status not in (404, 409):
            raise


class _Thread:
    """An event loop in a thread of its own, and the cluster in it."""

    def __init__(self, cluster: Callable[[], Cluster]) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cluster", daemon=True)
        self._thread.start()
        self.cluster = self.run(self._start(cluster))

    @staticmethod
    async def _start(make: Callable[[], Cluster]) -> Cluster:
        cluster = make()
        await cluster.start()
        return cluster

    def run(self, work: Coroutine[Any, Any, T], what: str = "the cluster", seconds: float = _MOST_SECONDS) -> T:
        """Wait for work in the loop; after the limit, print the stacks of all threads and tasks and cancel the work."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(seconds)
        except FutureTimeout:
            if running.done():
                raise  # the work has a limit of its own
            self._tell_where(f"{what} has not ended after {seconds:g} seconds")
            running.cancel()
            raise TimeoutError(f"{what} has not ended after {seconds:g} seconds") from None

    def _tell_where(self, what: str) -> None:
        """Print where all threads and all tasks of the loop are."""
        print(f"\n{what}; this is where everything stands:", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(file=sys.stderr)
        for task in asyncio.all_tasks(self._loop):
            task.print_stack(limit=8, file=sys.stderr)
        sys.stderr.flush()

    def close(self) -> None:
        with suppress(TimeoutError):
            self.run(self.cluster.stop(), "the end of the cluster", _END_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)


@cache
def running_cluster(definitions: Path | None, installation: str, version: str, kubelet: bool) -> _Thread:
    """Return the cluster of this process for a kind of installation; it is stopped when the process ends."""
    thread = _Thread(lambda: Cluster(definitions, installation, version, kubelet))
    Finalize(None, thread.close, exitpriority=10)
    return thread
