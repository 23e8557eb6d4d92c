"""A sandbox in which policies are at work: the API server and controllers, in one event loop.

It is a cluster with an installation, on this machine and without images: the definitions and the ConfigMap are those of
`manifests`, the controllers are the same that Deployments run. This module must never evaluate a request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

from kubesandbox.sandbox import Sandbox
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.controllers.admission.controller import AdmissionController, AdmissionSettings
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.cleanup.controller import CleanupController, CleanupSettings
from pyverno.controllers.reports.controller import ReportsController, ReportsSettings
from pyverno.errors import HostError
from pyverno.install.background import BACKGROUND as BACKGROUND_COMPONENT
from pyverno.install.cleanup import CLEANUP as CLEANUP_COMPONENT
from pyverno.install.component import Component, component_identity, role_binding
from pyverno.install.definitions import definitions
from pyverno.install.manifests import InstallSettings, manifests
from pyverno.install.reports import REPORTS as REPORTS_COMPONENT
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observer
from pyverno.value import dataclass, replace

# trust rows: own-process

__all__ = [
    "BACKGROUND",
    "CLEANUP",
    "CONTROLLERS",
    "REPORTS",
    "FurtherController",
    "PolicySandbox",
    "install_definitions",
    "reports_settings",
]

_DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_LOOPBACK: Final = "127.0.0.1"
_APPLIED: Final = ("Namespace", "ConfigMap")
_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02
_CLOCK_SECONDS: Final = 0.05
"""How long a response tells the time: there is one API server, whose clock tests may move."""

_ARRIVAL_TURNS: Final = 10
"""Pauses of the event loop in which a change reaches the watches of a controller in the same loop.

A single longer pause would end too early on a busy machine, where the process itself stands still for a while.
"""


class RunsBeside(Protocol):
    """A controller that runs beside the admission controller."""

    @property
    def is_idle(self) -> bool:
        """Return whether the controller works and has nothing left to do."""
        ...

    def run(self, stop: asyncio.Event) -> Coroutine[Any, Any, None]:
        """Work until `stop` is set."""
        ...


@dataclass(frozen=True, slots=True)
class FurtherController:
    """A controller to run beside the admission controller: the name of its installation, and its factory.

    It works as the service account of the installation.
    """

    component: Component
    make: Callable[[Access, AdmissionSettings], RunsBeside]

    @property
    def part(self) -> str:
        """The word of its names, such as `background`."""
        return self.component.part

    def user(self, namespace: str) -> str:
        """Return the user name of its service account."""
        return f"system:serviceaccount:{namespace}:{self.component.name}"


def _make_background(access: Access, settings: AdmissionSettings) -> BackgroundController:
    return BackgroundController(
        access,
        BackgroundSettings(
            namespace=settings.namespace,
            config_map=settings.config_map,
            metrics_config_map=settings.metrics_config_map,
            account=settings.background_account,
            exceptions=settings.exceptions,
            hosts=settings.hosts,
            rights=settings.rights,
            lease_retry=settings.lease_retry,
            qps=0,
        ),
    )


def reports_settings(settings: AdmissionSettings) -> ReportsSettings:
    """Return settings of a reports controller that runs beside an admission controller with these."""
    return ReportsSettings(
        namespace=settings.namespace,
        config_map=settings.config_map,
        metrics_config_map=settings.metrics_config_map,
        exceptions=settings.exceptions,
        hosts=settings.hosts,
        rights=settings.rights,
        lease_retry=settings.lease_retry,
        qps=0,
    )


def _make_cleanup(access: Access, settings: AdmissionSettings) -> CleanupController:
    return CleanupController(
        access,
        CleanupSettings(
            namespace=settings.namespace,
            config_map=settings.config_map,
            metrics_config_map=settings.metrics_config_map,
            protects_managed=settings.protects_managed,
            clock_seconds=_CLOCK_SECONDS,
            hosts=settings.hosts,
            rights=settings.rights,
            lease_retry=settings.lease_retry,
            qps=0,
        ),
    )


def _make_reports(access: Access, settings: AdmissionSettings) -> ReportsController:
    return ReportsController(access, reports_settings(settings))


BACKGROUND: Final = FurtherController(BACKGROUND_COMPONENT, _make_background)
CLEANUP: Final = FurtherController(CLEANUP_COMPONENT, _make_cleanup)
REPORTS: Final = FurtherController(REPORTS_COMPONENT, _make_reports)
CONTROLLERS: Final = (BACKGROUND, CLEANUP, REPORTS)
"""All controllers that can run beside the admission controller."""


class PolicySandbox:
    """Starts all parts and stops them in order; an async context manager.

    `sandbox.kubeconfig` is for kubectl; `controller.ready` is set when the webhooks are in place. The controller
    listens on a free port, so that several sandboxes find room on one machine. `further` are the controllers that run
    beside it, as service accounts that may do everything; with `as_installed` they may do what an installation allows.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        observer: Observer,
        settings: AdmissionSettings | None = None,
        *,
        further: Sequence[FurtherController] = (),
        as_installed: bool = False,
        ready_seconds: float = _READY_SECONDS,
    ) -> None:
        """Take a sandbox that has not started, an observer of answers, and the settings of the admission controller.

        The start fails after `ready_seconds` without controllers that work.
        """
        self.sandbox = sandbox
        self.controller: AdmissionController
        self.running: dict[str, RunsBeside] = {}
        """The controllers that run beside the admission controller, by their part."""
        self._observer = observer
        self._settings = settings or AdmissionSettings()
        if BACKGROUND in further and not self._settings.background_account:
            account = BACKGROUND.user(self._settings.namespace)
            self._settings = replace(self._settings, background_account=account)
        if CLEANUP in further and not self._settings.cleanup_account:
            self._settings = replace(self._settings, cleanup_account=CLEANUP.user(self._settings.namespace))
        self._further = tuple(further)
        self._as_installed = as_installed
        self._ready_seconds = ready_seconds
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._reservation: socket.socket | None = None
        self._beside: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.sandbox.start()
        try:
            await self._install()
            await self._run_controller()
            await self._run_further()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _install(self) -> None:
        async with Client(load_kubeconfig(self.sandbox.kubeconfig), qps=0) as client:
            await install_definitions(client)
            kinds = await discover(client)
            for body in self._installed_objects():
                info = kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
                if info is None:
                    raise HostError(f"the sandbox does not serve {body['kind']}")
                await _create(client, info.gvr, body)

    def _installed_objects(self) -> Iterator[JSONObject]:
        """Yield what of an installation is there: everything but what runs, and the identity of the webhook server."""
        settings = InstallSettings(namespace=self._settings.namespace)
        yield from (body for body in manifests(settings) if body["kind"] in _APPLIED)
        for each in self._further:
            yield from component_identity(each.component, settings)
            if not self._as_installed:
                yield _admin_binding(each.component, settings.namespace)

    async def _run_controller(self) -> None:
        access = load_kubeconfig(self.sandbox.kubeconfig)
        self._reservation = _reserve_port()
        port = self._reservation.getsockname()[1]
        server = f"{_LOOPBACK}:{port}"
        settings = replace(
            self._settings,
            address=_LOOPBACK,
            port=port,
            shares_port=True,
            server=server,
            certificates=replace(self._settings.certificates, server=server, namespace=self._settings.namespace),
        )
        self.controller = AdmissionController(access, settings, self._observer)
        self._running = asyncio.create_task(self.controller.run(self._stop))
        ready = asyncio.create_task(self.controller.ready.wait())
        await asyncio.wait({self._running, ready}, timeout=self._ready_seconds, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._running.done():
            self._running.result()
        if not self.controller.ready.is_set():
            raise HostError(f"the admission controller did not get ready within {self._ready_seconds:g} seconds")

    async def _run_further(self) -> None:
        """Start the other controllers, each with its own identity."""
        access = load_kubeconfig(self.sandbox.kubeconfig)
        for each in self._further:
            groups = ["system:serviceaccounts", f"system:serviceaccounts:{self._settings.namespace}"]
            own = replace(access, impersonate={"as": each.user(self._settings.namespace), "as-groups": groups})
            self.running[each.part] = controller = each.make(own, self._settings)
            self._beside.append(asyncio.create_task(controller.run(self._stop)))
        async with asyncio.timeout(self._ready_seconds):
            while not all(each.is_idle for each in self.running.values()):
                self._check_further()
                await asyncio.sleep(_POLL_SECONDS)

    def _check_further(self) -> None:
        for task in self._beside:
            if task.done():
                task.result()

    async def wait(self) -> None:
        """Wait until a controller ends by itself, which it does when something is wrong; raises the reason."""
        if self._running is not None:
            tasks = [self._running, *self._beside]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def settle(self) -> None:
        """Wait until policies that were written a moment ago are at work; raises HostError after `ready_seconds`.

        What the other controllers do about them may take longer.
        """
        for _ in range(_ARRIVAL_TURNS):
            await asyncio.sleep(_POLL_SECONDS)
        try:
            async with asyncio.timeout(self._ready_seconds):
                while not self.controller.is_settled:
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise HostError(
                f"the webhooks did not follow the policies within {self._ready_seconds:g} seconds"
            ) from None

    async def _end(self) -> None:
        self._stop.set()
        if self._running is not None:
            await asyncio.gather(self._running, *self._beside, return_exceptions=True)
        if self._reservation is not None:
            self._reservation.close()
        await self.sandbox.stop()


def _admin_binding(component: Component, namespace: str) -> JSONObject:
    account = {"kind": "ServiceAccount", "name": component.name, "namespace": namespace}
    metadata = {"name": f"pyverno:sandbox:{component.part}-controller"}
    return role_binding("ClusterRoleBinding", metadata, "ClusterRole", "cluster-admin", account)


async def install_definitions(client: Client) -> None:
    """Create the definitions of all policy kinds and wait until they are served."""
    names: list[str] = []
    for body in definitions():
        await _create(client, _DEFINITIONS, body)
        names.append(body["metadata"]["name"])
    for name in names:
        while not _is_established(await client.get(_DEFINITIONS, name)):
            await asyncio.sleep(0.05)


async def _create(client: Client, gvr: GVR, body: JSONObject) -> None:
    namespace = body["metadata"].get("namespace") or ""
    try:
        await client.request("POST", resource_path(gvr, namespace), body=body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


def _is_established(definition: JSONObject) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def _reserve_port() -> socket.socket:
    """Return a socket on a free port; a server that shares ports can listen there, and no other process can."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind((_LOOPBACK, 0))
    return reservation
