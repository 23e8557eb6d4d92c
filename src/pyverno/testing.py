"""A sandbox in which policies are at work: the API server and the admission controller, in one event loop.

It is a cluster with an installation, on this machine and without images: the definitions and the ConfigMap are those of
`manifests`, the controller is the same that a Deployment runs. This module must never judge a request.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from kubesandbox.sandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client, resource_path
from pyverno.cluster.discovery import discover
from pyverno.controllers.admission.controller import AdmissionController, AdmissionSettings
from pyverno.errors import HostError
from pyverno.install.definitions import definitions
from pyverno.install.manifests import InstallSettings, manifests
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observer
from pyverno.value import replace

__all__ = ["PolicySandbox", "install_definitions"]

_DEFINITIONS: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_LOOPBACK: Final = "127.0.0.1"
_APPLIED: Final = ("Namespace", "ConfigMap")
_READY_SECONDS: Final = 60.0
_ARRIVAL_SECONDS: Final = 0.2
"""How long a change needs at most to reach the watches of a controller in the same event loop."""


class PolicySandbox:
    """Starts both parts and stops them in order; an async context manager.

    `sandbox.kubeconfig` is for kubectl; `controller.ready` is set when the webhooks are in place. The controller
    listens on a free port, so that several sandboxes find room on one machine.
    """

    def __init__(self, sandbox: Sandbox, observer: Observer, settings: AdmissionSettings | None = None) -> None:
        """Take a sandbox that has not started, who is told of answers, and the settings of the controller."""
        self.sandbox = sandbox
        self.controller: AdmissionController
        self._observer = observer
        self._settings = settings or AdmissionSettings()
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.sandbox.start()
        try:
            await self._install()
            await self._run_controller()
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
            for body in manifests(InstallSettings(namespace=self._settings.namespace)):
                if body["kind"] in _APPLIED:
                    info = kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
                    if info is None:
                        raise HostError(f"the sandbox does not serve {body['kind']}")
                    await _create(client, info.gvr, body)

    async def _run_controller(self) -> None:
        access = load_kubeconfig(self.sandbox.kubeconfig)
        port = _free_port()
        server = f"{_LOOPBACK}:{port}"
        settings = replace(
            self._settings,
            address=_LOOPBACK,
            port=port,
            server=server,
            certificates=replace(self._settings.certificates, server=server, namespace=self._settings.namespace),
        )
        self.controller = AdmissionController(access, settings, self._observer)
        self._running = asyncio.create_task(self.controller.run(self._stop))
        ready = asyncio.create_task(self.controller.ready.wait())
        await asyncio.wait({self._running, ready}, timeout=_READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._running.done():
            self._running.result()
        if not self.controller.ready.is_set():
            raise HostError("the admission controller did not get ready within a minute")

    async def wait(self) -> None:
        """Wait until the controller ends by itself, which it does when something is wrong; raises what that was."""
        if self._running is not None:
            await asyncio.shield(self._running)

    async def settle(self) -> None:
        """Wait until policies that were written a moment ago are at work; raises HostError after a minute."""
        await asyncio.sleep(_ARRIVAL_SECONDS)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not self.controller.is_settled:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise HostError("the webhooks did not follow the policies within a minute") from None

    async def _end(self) -> None:
        self._stop.set()
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        await self.sandbox.stop()


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


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind((_LOOPBACK, 0))
        port: int = listener.getsockname()[1]
    return port
