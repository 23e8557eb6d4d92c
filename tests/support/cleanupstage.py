"""A sandbox with a movable clock, the definitions of policies and a cleanup controller that becomes idle.

async with cleaning() as stage:
    await stage.create(body)
    await stage.pass_time(seconds)      # moves the cluster's clock, and waits for everything that is due
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kubesandbox import Sandbox
from kubesandbox.sandbox import Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.controllers.cleanup.controller import CleanupController, CleanupSettings
from pyverno.install.definitions import definitions
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import DELETING_POLICIES
from pyverno.value import replace

__all__ = ["CleanupStage", "MovableClock", "cleaning", "cleanup_policy", "deleting_policy", "pod"]

DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
DEFINED = (*(gvr.resource for gvr in DELETING_POLICIES), "policyexceptions", "globalcontextentries")
EVENTS = GVR("events.k8s.io", "v1", "events")


@dataclass
class MovableClock:
    """The clock of this machine, moved by `shift`; its start is in the first seconds of a minute."""

    shift: timedelta = field(default_factory=lambda: timedelta(seconds=-datetime.now(UTC).second))

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC) + self.shift

    def move(self, seconds: float) -> None:
        """Advance the time."""
        self.shift += timedelta(seconds=seconds)


@dataclass
class CleanupStage:
    """The cluster, its client, its clock and the cleanup controller."""

    sandbox: Sandbox
    clock: MovableClock
    client: Client
    kinds: KindTable
    controller: CleanupController

    async def create(self, body: JSONObject) -> JSONObject:
        """Create an object, and wait until the controller has processed it."""
        made = await self.client.create(self._gvr(body), body, body["metadata"].get("namespace") or "")
        await self.rest()
        return made

    async def get(self, body: JSONObject) -> JSONObject | None:
        """Return an object as stored, or None."""
        metadata = body["metadata"]
        try:
            return await self.client.get(self._gvr(body), metadata["name"], metadata.get("namespace") or "")
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def patch(self, body: JSONObject, patch: JSONObject) -> JSONObject:
        """Merge a patch into an object."""
        metadata = body["metadata"]
        found = await self.client.patch(self._gvr(body), metadata["name"], patch, metadata.get("namespace") or "")
        await self.rest()
        return found

    async def exists(self, body: JSONObject) -> bool:
        """Return whether an object exists and is not being deleted."""
        found = await self.get(body)
        return found is not None and not found["metadata"].get("deletionTimestamp")

    async def pass_time(self, seconds: float) -> None:
        """Move the clock of the cluster, and wait for everything that is due."""
        self.clock.move(seconds)
        await _pass_turns(2)
        for _ in range(3):
            await self.controller.look_at_clock()
            await _pass_turns(3)
        await self.rest()

    async def rest(self) -> None:
        """Wait until the controller is idle."""
        await _pass_turns(10)
        async with asyncio.timeout(60):
            while not self.controller.is_idle:
                await asyncio.sleep(0.01)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(60):
            while not await holds():
                await asyncio.sleep(0.02)

    async def notes(self) -> list[str]:
        """Return the notes of all events, in order of their names."""
        found = await self.client.list(EVENTS)
        return [each.get("note") or "" for each in found["items"]]

    def _gvr(self, body: JSONObject) -> GVR:
        info = self.kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
        assert info is not None
        return info.gvr


async def _pass_turns(count: int) -> None:
    """Let changes reach the watches in this event loop; one longer pause may pass while the process stands still."""
    for _ in range(count):
        await asyncio.sleep(0.01)


@asynccontextmanager
async def cleaning(
    *,
    user: str = "",
    clock: MovableClock | None = None,
    further: tuple[JSONObject, ...] = (),
    sandbox: Sandbox | None = None,
    **settings: Any,
) -> AsyncIterator[CleanupStage]:
    """Run a cluster and a cleanup controller with all permissions, or with those of `user`."""
    moved = clock or MovableClock()
    made = sandbox or Sandbox(Settings(clock=moved.now, kubelet=False, namespaces=("kyverno", "team")))
    async with made:
        access = load_kubeconfig(made.kubeconfig, environment={})
        async with Client(access, qps=0) as client:
            await _define(client)
            kinds = await discover(client)
            for body in further:
                info = kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
                assert info is not None
                await client.create(info.gvr, body, body["metadata"].get("namespace") or "")
            own = access
            if user:
                own = replace(access, impersonate={"as": user})
            wanted = CleanupSettings(
                **{"qps": 0, "clock_seconds": 0.02, "ttl_seconds": 1.0, "lease_retry": 1.0, **settings}
            )
            controller = CleanupController(own, wanted)
            stop = asyncio.Event()
            running = asyncio.create_task(controller.run(stop))
            stage = CleanupStage(made, moved, client, kinds, controller)
            try:
                async with asyncio.timeout(30):
                    while not controller.is_idle and not running.done():
                        await asyncio.sleep(0.01)
                yield stage
            finally:
                stop.set()
                await running


async def _define(client: Client) -> None:
    """Create the definitions of policies that delete and of exceptions, and wait until they are served."""
    bodies = [each for each in definitions() if each["spec"]["names"]["plural"] in DEFINED]
    for body in bodies:
        await client.create(DEFINITIONS, body)
    for body in bodies:
        while not (await client.get(DEFINITIONS, body["metadata"]["name"])).get("status", {}).get("conditions"):
            await asyncio.sleep(0.02)


def pod(name: str, namespace: str = "default", **metadata: Any) -> JSONObject:
    """Return a Pod that is not scheduled."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    }


def cleanup_policy(
    name: str = "clean", *, kinds: tuple[str, ...] = ("Pod",), namespace: str = "", **spec: Any
) -> JSONObject:
    """Return a cleanup policy that runs every minute."""
    kind = "CleanupPolicy" if namespace else "ClusterCleanupPolicy"
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"schedule": "* * * * *", "match": {"any": [{"resources": {"kinds": list(kinds)}}]}, **spec},
    }


AUTHORED: Final = {"pyverno.io/author": '{"username": "admin", "groups": ["system:masters"]}'}
"""The annotation of a policy that an administrator wrote."""


def deleting_policy(name: str = "delete", *, namespace: str = "", **spec: Any) -> JSONObject:
    """Return a deleting policy for Pods that runs every minute."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
    kind = "NamespacedDeletingPolicy" if namespace else "DeletingPolicy"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace, "annotations": AUTHORED} if namespace else {})},
        "spec": {"schedule": "* * * * *", "matchConstraints": {"resourceRules": rules}, **spec},
    }
