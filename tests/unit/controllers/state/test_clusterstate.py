"""The cluster state of a replica: it is complete, or the replica reports that it is not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import Served, find_served
from pyverno.cluster.informer import Informer
from pyverno.compiler.compile import Compiled
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state import policystore, servedkinds
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
from pyverno.errors import HostUnavailableError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.yaml.documents import Document
from pyverno.testing import install_definitions
from tests.support.apiserver import serving, status

DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
POLICY: JSONObject = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "names"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "validations": [{"expression": "false"}],
    },
}


@asynccontextmanager
async def cluster(*, defined: bool = True) -> AsyncIterator[Client]:
    """Run an API server with the definitions of the policy kinds."""
    async with (
        Sandbox(Settings(controllers=False)) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
    ):
        if defined:
            await install_definitions(client)
        yield client


@asynccontextmanager
async def replica(client: Client) -> AsyncIterator[ClusterState]:
    """Yield the cluster state of one replica before its start."""
    parts, settings = Tasks(), AdmissionSettings()
    hosts = HostFactory(client, settings.hosts, KindTable)
    world = ClusterState(client, settings.state, hosts, parts.start)
    try:
        yield world
        parts.check()
    finally:
        await parts.end()
        await hosts.close()


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def without_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make discovery omit the CEL policies, as it does while their API is late."""

    async def late(client: Client) -> Served:
        served = await find_served(client)
        kept = KindTable([info for info in served.kinds if info.group != POLICIES.group])
        return Served(kept, frozenset({(POLICIES.group, POLICIES.version)}))

    monkeypatch.setattr(servedkinds, "find_served", late)


def play(scene: Callable[[Client], Awaitable[None]], *, defined: bool = True) -> None:
    """Run a scene in a fresh cluster."""

    async def run() -> None:
        async with cluster(defined=defined) as client:
            await scene(client)

    asyncio.run(run())


def test_policies_whose_api_discovery_leaves_out_are_known_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their CRD exists: a replica without watches of them would allow every request."""
    without_policies(monkeypatch)

    async def scene(client: Client) -> None:
        await client.create(POLICIES, POLICY)
        async with replica(client) as world:
            await world.start()
            assert ["names"] == [policy.info.name for policy in world.policies.all.policies]
            assert "" == world.problem()

    play(scene)


def test_a_kind_that_has_just_been_defined_stops_everything_until_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy set without the new kind would yield "no policy matches"."""
    may_list = asyncio.Event()
    listing = Client.list

    async def slow(client: Client, gvr: GVR, *rest: Any, **more: Any) -> JSONObject:
        if gvr == POLICIES:
            await may_list.wait()
        return await listing(client, gvr, *rest, **more)

    async def scene(client: Client) -> None:
        definition = await client.get(DEFINITIONS, "validatingpolicies.policies.kyverno.io")
        await client.delete(DEFINITIONS, definition["metadata"]["name"])
        monkeypatch.setattr(Client, "list", slow)
        async with replica(client) as world:
            await world.start()
            following = asyncio.create_task(world.follow_definitions())
            assert 0 == len(world.policies.all.policies)
            again = {**definition, "metadata": {"name": definition["metadata"]["name"]}, "status": {}}
            await client.create(DEFINITIONS, again)
            await until(lambda: world.watches(POLICIES))
            with pytest.raises(HostUnavailableError, match="validatingpolicies are not known yet"):
                _ = world.policies
            assert "validatingpolicies are not known yet" == world.problem()
            may_list.set()
            await until(lambda: not world.problem())
            await client.create(POLICIES, POLICY)
            await until(lambda: len(world.policies.all.policies) == 1)
            following.cancel()

    play(scene)


def test_a_kind_whose_definition_is_deleted_is_no_longer_watched(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise its watch would stay stale, and the replica would never be ready again; the log says what ended."""

    async def scene(client: Client) -> None:
        await client.create(POLICIES, POLICY)
        async with replica(client) as world:
            await world.start()
            following = asyncio.create_task(world.follow_definitions())
            await client.delete(DEFINITIONS, "validatingpolicies.policies.kyverno.io")
            await until(lambda: not world.watches(POLICIES))
            await until(lambda: any(each.msg.startswith("a definition is deleted") for each in caplog.records))
            assert ([], "") == ([*world.policies.all.policies], world.problem())
            following.cancel()

    play(scene)
    [line] = [each for each in caplog.records if each.msg.startswith("a definition is deleted")]
    assert str(POLICIES) == line.__dict__["fields"]["resource"]


def test_a_new_leader_waits_for_existing_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late watch would lead to the deletion of a policy's webhooks."""
    may_watch = asyncio.Event()
    listing, streaming = Client.list, Client.stream
    asked: list[GVR] = []

    async def noted(client: Client, gvr: GVR, *rest: Any, **more: Any) -> JSONObject:
        asked.append(gvr)
        return await listing(client, gvr, *rest, **more)

    async def late(client: Client, path: str, **more: Any) -> AsyncIterator[JSONObject]:
        async for event in streaming(client, path, **more):
            await may_watch.wait()
            yield event

    async def scene(client: Client) -> None:
        async with replica(client) as world:
            await world.start()
            monkeypatch.setattr(Client, "list", noted)
            await client.create(POLICIES, POLICY)
            catching = asyncio.create_task(world.catch_up())
            await until(lambda: asked.count(POLICIES) > 1 or catching.done())
            assert not catching.done()
            may_watch.set()
            await catching
            assert ["names"] == [policy.info.name for policy in world.policies.all.policies]

    monkeypatch.setattr(Client, "stream", late)
    play(scene)


def test_a_cluster_without_our_definitions_is_not_served() -> None:
    """The error names the remedy."""

    async def scene(client: Client) -> None:
        async with replica(client) as world:
            with pytest.raises(UsageError, match="pyverno install"):
                await world.start()

    play(scene, defined=False)


def test_a_forbidden_read_is_reported() -> None:
    """Without the reason a waiting replica could not be repaired."""

    async def run() -> str:
        async with serving() as (script, client):
            script.on("GET /apis/x.io/v1/widgets", status(403, "Forbidden"))
            informer = Informer(client, GVR("x.io", "v1", "widgets"))
            running = asyncio.create_task(informer.run())
            await until(lambda: bool(informer.trouble))
            running.cancel()
            return informer.trouble

    assert "Forbidden" == asyncio.run(run())


def test_the_event_loop_compiles_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy with thousands of rules takes seconds, in which every review would wait: threads compile, one at a time.

    So it is for policies of the list and those that come later; a change of the status compiles nothing.
    """
    compiled: list[tuple[str, bool]] = []
    busy: set[int] = set()
    compile_document = policystore.compile_document

    def spied(document: Document, **options: Any) -> Compiled:
        busy.add(threading.get_ident())
        assert 1 == len(busy), "two at a time"
        compiled.append((document.value["metadata"]["name"], threading.current_thread() is threading.main_thread()))
        found = compile_document(document, **options)
        busy.clear()
        return found

    monkeypatch.setattr(policystore, "compile_document", spied)

    async def scene(client: Client) -> None:
        names = [f"early-{number}" for number in range(3)]
        for name in names:
            await client.create(POLICIES, {**POLICY, "metadata": {"name": name}})
        async with replica(client) as state:
            await state.start()
            assert 3 == len(state.store.compiled())
            late = await client.create(POLICIES, {**POLICY, "metadata": {"name": "late"}})
            await until(lambda: 4 == len(state.store.compiled()))
            await client.update(
                POLICIES, {**late, "status": {"conditionStatus": {"ready": True}}}, subresource="status"
            )
            await client.delete(POLICIES, "early-0")
            await until(lambda: 3 == len(state.store.compiled()))
        assert [(name, False) for name in (*names, "late")] == sorted(compiled)

    play(scene)
