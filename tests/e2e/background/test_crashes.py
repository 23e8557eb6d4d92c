"""A controller that ends at any of its writes, just before or just after: nothing is lost, nothing is written twice.

Between a write and what follows from it (the end of the UpdateRequest, the memory of what was written) the stored
object is all that the next controller has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.e2e.background.test_faults import BINDINGS, IS_FULL, MAPS, POLICIES, USER, as_background, controller, until
from tests.support.apiserver import status
from tests.support.faultyproxy import FaultyProxy
from tests.support.history import History, following
from tests.support.servers import listening

BOOKKEEPING: Final = "coordination.k8s.io", "events.k8s.io"
MOMENTS: Final = [(number, after) for number in range(1, 6) for after in ((False, True) if IS_FULL else (True,))]
"""The writes at which the controller ends: the first five for a trigger, each before it or after it was performed."""


class CrashingProxy(FaultyProxy):
    """Passes everything up to one write, and nothing from there on: the controller behind it is as good as dead."""

    def __init__(self, upstream: Client, number: int, *, after: bool) -> None:
        super().__init__(upstream)
        self._left, self._after = number, after
        self.crashed = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        is_write = request.method != "GET" and not any(group in request.path for group in BOOKKEEPING)
        if is_write and not self.crashed.is_set():
            self._left -= 1
            if not self._left:
                self.crashed.set()
                if self._after:
                    await super().handle(request)
        if self.crashed.is_set():
            return status(500, "InternalError")
        return await super().handle(request)


@asynccontextmanager
async def crashing(upstream: Client, number: int, *, after: bool) -> AsyncIterator[tuple[CrashingProxy, Access]]:
    """Run a proxy; yield it with the access of its clients."""
    proxy = CrashingProxy(upstream, number, after=after)
    async with listening(proxy.handle) as port:
        yield proxy, Access(f"http://127.0.0.1:{port}")


@dataclass
class Scene:
    """A cluster in which a trigger has one object made, one copied and one changed."""

    cluster: PolicySandbox
    client: Client
    history: History

    async def create(self, name: str, **labels: str) -> None:
        """Create a ConfigMap."""
        metadata = {"name": name, "labels": {"crash": "yes", **labels}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "1"}}
        await self.client.create(MAPS, body, "default")

    async def is_done(self) -> bool:
        """Return whether no request is left."""
        are_left = await self.client.has_any(UPDATE_REQUESTS, "kyverno")
        return self.cluster.controller.is_idle and not are_left


def _policy(name: str, **actions: JSONObject) -> JSONObject:
    match = {"any": [{"resources": {"kinds": ["ConfigMap"], "selector": {"matchLabels": {"asks": "yes"}}}}]}
    rules = [{"name": rule, "match": match, **action} for rule, action in actions.items()]
    metadata = {"name": name}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": rules}}


def _policies() -> tuple[JSONObject, JSONObject]:
    trigger = "{{request.object.metadata.name}}"
    place = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default"}
    data = {"metadata": {"labels": {"crash": "yes"}}, "data": {"to": trigger}}
    made = {"generate": {**place, "name": f"made-{trigger}", "synchronize": True, "data": data}}
    source = {"namespace": "default", "name": "source"}
    copied = {"generate": {**place, "name": f"copy-{trigger}", "synchronize": True, "clone": source}}
    patch = {"data": {"+(seen)": "{{ random('[a-z]{12}') }}"}}
    changed = {"mutate": {"targets": [{**place, "name": f"target-{trigger}"}], "patchStrategicMerge": patch}}
    return _policy("make", made=made, copied=copied), _policy("change", changed=changed)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    """Run a cluster with the policies and without a background controller."""
    settings = AdmissionSettings(background_account=USER, qps=0)
    async with (
        PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), settings) as cluster,
        Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        following(client, MAPS, "crash=yes") as history,
    ):
        group = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "background"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "User", "name": USER, "apiGroup": group}],
        }
        await client.create(BINDINGS, binding)
        found = Scene(cluster, client, history)
        await found.create("source")
        for policy in _policies():
            await client.create(POLICIES, policy)
        await cluster.settle()
        yield found


def in_scene(act: Callable[[Scene], Awaitable[None]]) -> None:
    """Act in a cluster of one's own."""

    async def run() -> None:
        async with scene() as found:
            await act(found)

    asyncio.run(run())


def test_a_controller_may_end_at_any_of_its_writes() -> None:
    """Its successor finishes the work: every object is created, copied or changed exactly once."""

    async def act(found: Scene) -> None:
        upstream = Client(as_background(found.client.access), qps=0)
        async with upstream:
            for number, after in MOMENTS:
                name = f"t{number}{'a' if after else 'b'}"
                await found.create(f"target-{name}")
                async with (
                    crashing(upstream, number, after=after) as (proxy, access),
                    controller(access, name, shards=1),
                    asyncio.timeout(60),
                ):
                    await found.create(name, asks="yes")
                    await proxy.crashed.wait()
                # as a container that is started again, whose lease is still its own
                async with controller(upstream.access, name, shards=1):
                    await until(found.is_done)
            names = [f"t{number}{'a' if after else 'b'}" for number, after in MOMENTS]
            await found.history.catch_up()
            writes = {name: times for (_, name), times in found.history.writes().items()}
            once = {f"{part}{name}": 1 for name in names for part in ("", "made-", "copy-")}
            assert {**once, **{f"target-{name}": 2 for name in names}, "source": 2} == writes

    in_scene(act)
