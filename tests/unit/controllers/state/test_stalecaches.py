"""Each cache behind verdicts reports within the bound that it is stale, and recovers by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.globalcontext import ENTRY_VERSIONS
from pyverno.controllers.state.hosts import HostFactory, HostSettings
from pyverno.engine.request import User
from pyverno.errors import HostError
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import WATCHED_EXCEPTIONS, WATCHED_POLICIES
from pyverno.telemetry.metrics import Metrics
from tests.support.faultyproxy import FaultyProxy, Trouble, proxied
from tests.unit.controllers.state.test_clusterstate import cluster

BOUND = 1.0
NAMESPACES = GVR("", "v1", "namespaces")
BINDINGS = GVR("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
CONFIG_MAPS = GVR("", "v1", "configmaps")
DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
CACHES = {
    "namespaces": resource_path(NAMESPACES),
    "rolebindings": resource_path(GVR("rbac.authorization.k8s.io", "v1", "rolebindings")),
    "clusterrolebindings": resource_path(BINDINGS),
    "configmaps": resource_path(CONFIG_MAPS, "kyverno"),
    "customresourcedefinitions": resource_path(DEFINITIONS),
    "clusterpolicies": resource_path(WATCHED_POLICIES[0]),
    "validatingpolicies": resource_path(WATCHED_POLICIES[2]),
    "policyexceptions": resource_path(WATCHED_EXCEPTIONS[0]),
    "globalcontextentries": resource_path(ENTRY_VERSIONS[0]),
}
Scene = Callable[["Replica"], Awaitable[None]]


class Replica:
    """The state of one replica, and a proxy that can take resources away from it."""

    def __init__(self, upstream: Client, proxy: FaultyProxy, world: ClusterState, hosts: HostFactory) -> None:
        self.upstream = upstream
        self.proxy = proxy
        self.world = world
        self.hosts = hosts
        self.metrics = Metrics()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def replica() -> AsyncIterator[Replica]:
    """Run a cluster and the state of a replica."""
    settings = AdmissionSettings(hosts=HostSettings(stale_seconds=BOUND))
    parts, metrics = Tasks(), Metrics()
    async with cluster() as upstream, proxied(upstream) as (proxy, client):
        hosts = HostFactory(client, settings.hosts, lambda: world.kinds)
        world = ClusterState(client, settings.state, hosts, parts.start, metrics)
        try:
            await world.start()
            parts.start(world.follow_definitions())
            made = Replica(upstream, proxy, world, hosts)
            made.metrics = metrics
            await made.until(lambda: not world.problem())
            yield made
            parts.check()
        finally:
            await parts.end()
            await hosts.close()


def play(scene: Scene) -> None:
    """Run a scene with a replica of its own."""

    async def run() -> None:
        async with replica() as made:
            await scene(made)

    asyncio.run(run())


@pytest.mark.parametrize("cache", CACHES)
def test_a_replica_that_cannot_follow_a_resource_is_not_ready(cache: str) -> None:
    """The problem names resource and reason; the replica is ready again once the resource can be read."""

    async def scene(replica: Replica) -> None:
        for trouble in (Trouble.REFUSED, Trouble.SILENT):
            replica.proxy.trouble(CACHES[cache], trouble)
            told = f"{cache} have not been refreshed for more than 1 seconds"
            await replica.until(lambda told=told: replica.world.problem().startswith(told))  # type: ignore[misc]
            stale = [value for (name,), value in replica.world.stale_seconds() if name.split(".")[0] == cache]
            assert BOUND < max(stale)
            replica.proxy.mend(CACHES[cache])
            await replica.until(lambda: not replica.world.problem())

    play(scene)


@pytest.mark.parametrize("trouble", Trouble)
def test_whatever_keeps_a_replica_from_following_makes_it_not_ready(trouble: Trouble) -> None:
    """Changes during the outage are known when the replica is ready again."""

    async def scene(replica: Replica) -> None:
        replica.proxy.trouble(CACHES["namespaces"], trouble)
        await replica.until(lambda: replica.world.problem().startswith("namespaces have not been refreshed"))
        body: JSONObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
        await replica.upstream.create(NAMESPACES, body)
        replica.proxy.mend(CACHES["namespaces"])
        await replica.until(lambda: not replica.world.problem())
        assert replica.world.namespace("new") is not None

    play(scene)


def test_bindings_that_were_deleted_meanwhile_give_no_role_any_more() -> None:
    """A replica that is ready again uses the current roles."""
    name = "admins"
    body: JSONObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }

    async def scene(replica: Replica) -> None:
        def roles() -> tuple[str, ...]:
            return replica.world.roles_of(User("alice"), "default")[1]

        await replica.upstream.create(BINDINGS, body)
        await replica.until(lambda: roles() == ("cluster-admin",))
        replica.proxy.trouble(CACHES["clusterrolebindings"], Trouble.AWAY)
        await replica.upstream.delete(BINDINGS, name)
        await replica.until(lambda: replica.world.problem().startswith("clusterrolebindings have not been refreshed"))
        replica.proxy.mend(CACHES["clusterrolebindings"])
        await replica.until(lambda: not replica.world.problem())
        assert () == roles()

    play(scene)


def test_a_replica_with_failing_discovery_is_not_ready() -> None:
    """Policies of an unknown kind would never be evaluated."""

    async def scene(replica: Replica) -> None:
        for trouble in (Trouble.REFUSED, Trouble.SILENT):
            replica.proxy.trouble("/apis", trouble)
            told = "what the cluster serves has not been known for more than 1 seconds"
            await replica.until(lambda told=told: replica.world.problem().startswith(told))  # type: ignore[misc]
            replica.proxy.mend("/apis")
            await replica.until(lambda: not replica.world.problem())

    play(scene)


def test_config_maps_in_memory_are_not_used_once_they_are_stale() -> None:
    """The host then reads from the API server, and a failing read is an error."""
    body: JSONObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "teams", "labels": {"cache.kyverno.io/enabled": "yes"}},
    }
    cached, single = resource_path(CONFIG_MAPS), resource_path(CONFIG_MAPS, "default", "teams")

    async def scene(replica: Replica) -> None:
        host = replica.hosts.host()
        await replica.upstream.create(CONFIG_MAPS, body, "default")
        await replica.until(lambda: host.cached_config_map("default", "teams") is not None)
        replica.proxy.trouble(cached, Trouble.REFUSED)
        await replica.until(lambda: host.cached_config_map("default", "teams") is None)
        found = await asyncio.to_thread(host.config_map, "default", "teams")
        assert "teams" == found["metadata"]["name"]
        replica.proxy.trouble(single, Trouble.AWAY)
        with pytest.raises(HostError, match="ServiceUnavailable"):
            await asyncio.to_thread(host.config_map, "default", "teams")
        replica.proxy.mend(cached)
        await replica.until(lambda: host.cached_config_map("default", "teams") is not None)

    play(scene)


def test_entries_of_a_recreated_definition_are_followed_at_once() -> None:
    """CRDs are watched, so entries do not wait for the next refresh."""
    group = "example.com"
    definition: JSONObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
            "scope": "Cluster",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    entry: JSONObject = {
        "apiVersion": "kyverno.io/v2",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "things"},
        "spec": {"kubernetesResource": {"group": group, "version": "v1", "resource": "things"}},
    }

    async def scene(replica: Replica) -> None:
        def read() -> object:
            try:
                return replica.hosts.entries.get("things")
            except HostError as error:
                return error.message

        await replica.upstream.create(DEFINITIONS, definition)
        await replica.upstream.create(ENTRY_VERSIONS[0], entry)
        await replica.until(lambda: read() == [])
        await replica.upstream.delete(DEFINITIONS, f"things.{group}")
        await replica.until(lambda: read() == "the data of global context entry `things` are too old to rely on")
        unavailable = replica.hosts.status.unavailable
        await replica.until(lambda: dict(unavailable()) == {("things",): 1.0})
        shown = {each.name: each.numbers for each in replica.metrics.instruments.read()}
        assert {("things",): 1.0} == shown["kyverno_globalcontext_entry_unavailable"]
        await replica.upstream.create(DEFINITIONS, definition)
        await replica.until(lambda: read() == [])
        await replica.until(lambda: dict(unavailable()) == {("things",): 0.0})

    play(scene)


def test_an_outage_is_two_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Its begin and its end; each try was a line."""

    async def scene(replica: Replica) -> None:
        replica.proxy.trouble("/api", Trouble.AWAY)
        await replica.until(lambda: "what the cluster serves" in replica.world.problem())
        replica.proxy.mend("/api")
        await replica.until(lambda: any("known again" in each.getMessage() for each in caplog.records))

    with caplog.at_level(logging.INFO, "pyverno.admission"):
        play(scene)
    found = [each.getMessage() for each in caplog.records if each.getMessage().startswith("what the cluster serves")]
    assert ["what the cluster serves cannot be found out", "what the cluster serves is known again"] == found
