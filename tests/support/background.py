"""A cluster in which policies generate and mutate objects: a sandbox with the background controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, PolicySandbox

__all__ = ["World", "in_cluster", "world"]

NAMESPACES = GVR("", "v1", "namespaces")
_SECONDS = 60.0


class World:
    """A cluster and its administrator."""

    def __init__(self, sandbox: PolicySandbox, client: Client) -> None:
        self.sandbox = sandbox
        self.client = client

    async def apply(self, gvr: GVR, body: JSONObject) -> JSONObject:
        """Create or replace an object, and wait until policies are in force."""
        namespace = body["metadata"].get("namespace", "")
        try:
            stored = await self.client.create(gvr, body, namespace)
        except StatusError as error:
            if error.status != 409:
                raise
            now = await self.client.get(gvr, body["metadata"]["name"], namespace)
            version = now["metadata"]["resourceVersion"]
            changed = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            stored = await self.client.update(gvr, changed, namespace)
        await self.sandbox.settle()
        return stored

    async def namespace(self, name: str, **labels: str) -> JSONObject:
        """Create a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        return await self.client.create(NAMESPACES, body)

    async def get(self, gvr: GVR, name: str, namespace: str = "") -> JSONObject | None:
        """Return an object, None when there is none."""
        try:
            return await self.client.get(gvr, name, namespace)
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def until(self, holds: Callable[[], Awaitable[Any]]) -> Any:
        """Wait until a condition has a true value, and return it."""
        async with asyncio.timeout(_SECONDS):
            while not (found := await holds()):
                await asyncio.sleep(0.02)
        return found

    async def appears(self, gvr: GVR, name: str, namespace: str = "") -> JSONObject:
        """Wait for an object."""
        found: JSONObject = await self.until(lambda: self.get(gvr, name, namespace))
        return found

    async def vanishes(self, gvr: GVR, name: str, namespace: str = "") -> None:
        """Wait until an object is gone."""

        async def is_gone() -> bool:
            return await self.get(gvr, name, namespace) is None

        await self.until(is_gone)

    async def rest(self) -> None:
        """Wait until every UpdateRequest is handled and the controllers are idle."""

        async def is_done() -> bool:
            waiting = await self.client.list(UPDATE_REQUESTS, "kyverno")
            background = self.sandbox.running[BACKGROUND.part]
            return self.sandbox.controller.is_idle and background.is_idle and not waiting["items"]

        await self.sandbox.settle()
        await self.until(is_done)


@asynccontextmanager
async def world(settings: AdmissionSettings | None = None) -> AsyncIterator[World]:
    """Run a cluster with the admission and the background controller."""
    sandbox = PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), settings, further=(BACKGROUND,))
    async with sandbox, Client(load_kubeconfig(sandbox.sandbox.kubeconfig), qps=0) as client:
        yield World(sandbox, client)


def in_cluster(act: Callable[[World], Awaitable[None]], settings: AdmissionSettings | None = None) -> None:
    """Run a scene in a cluster of its own."""

    async def run() -> None:
        async with world(settings) as found:
            await act(found)

    asyncio.run(run())
