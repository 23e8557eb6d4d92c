"""Duties of the leader: it keeps the webhooks in place, and deletes them when the last replica leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.cluster.leases import LEASES
from pyverno.controllers.admission.leader import AdmissionLeader
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.controllers.certificates.secrets import make_authority
from pyverno.controllers.runtime.heartbeat import Heartbeat
from pyverno.controllers.runtime.tasks import Tasks
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.controllers.state.hosts import HostFactory
from pyverno.controllers.webhooks.reconciler import _Key
from pyverno.controllers.webhooks.registration import WebhookRegistration
from pyverno.controllers.webhooks.sources import PolicyKey, Sources
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

VALIDATING = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
MUTATING = GVR("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
DEPLOYMENTS = GVR("apps", "v1", "deployments")
RESOURCES = "kyverno-resource-validating-webhook-cfg"


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.05)


def test_deleted_or_changed_webhooks_are_restored() -> None:
    """The watch brings the change, whichever kind of webhook it is."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            await client.delete(VALIDATING, RESOURCES)
            await client.delete(MUTATING, "kyverno-verify-mutating-webhook-cfg")
            policies = await client.get(VALIDATING, "kyverno-policy-validating-webhook-cfg")
            policies["webhooks"][0]["failurePolicy"] = "Ignore"
            await client.update(VALIDATING, policies)

            async def are_back() -> bool:
                named = {item["metadata"]["name"]: item for item in (await client.list(VALIDATING))["items"]}
                others = {item["metadata"]["name"] for item in (await client.list(MUTATING))["items"]}
                found = named["kyverno-policy-validating-webhook-cfg"]["webhooks"][0]["failurePolicy"]
                return RESOURCES in named and "kyverno-verify-mutating-webhook-cfg" in others and found == "Fail"

            await until(are_back)

    asyncio.run(run())


def test_the_heartbeat_goes_through_the_webhook() -> None:
    """The webhook writes the time into the lease, also when another client updates the lease."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            lease = await client.get(LEASES, "kyverno-health", "kyverno")
            lease["metadata"]["annotations"]["kyverno.io/last-request-time"] = "2000-01-01T00:00:00Z"
            stored = await client.update(LEASES, lease, "kyverno")
            assert "2000-01-01T00:00:00Z" != stored["metadata"]["annotations"]["kyverno.io/last-request-time"]

    asyncio.run(run())


def test_a_new_leader_has_complete_watches_before_it_writes_a_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader with incomplete watches would delete the webhooks of policies that it has not received yet."""
    steps: list[str] = []
    catch_up, register = ClusterState.catch_up, WebhookRegistration.register

    async def caught_up(world: ClusterState) -> None:
        await catch_up(world)
        steps.append("caught up")

    async def registered(registration: WebhookRegistration, sources: Sources) -> Mapping[PolicyKey, str]:
        steps.append("registered")
        return await register(registration, sources)

    monkeypatch.setattr(ClusterState, "catch_up", caught_up)
    monkeypatch.setattr(WebhookRegistration, "register", registered)

    async def run() -> None:
        async with PolicySandbox(Sandbox(Settings(controllers=False)), Observers()):
            assert ["caught up", "registered"] == steps[:2]

    asyncio.run(run())


def test_a_policy_that_comes_while_webhooks_are_written_is_not_ready_before_its_own_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clients that wait for `Ready` would otherwise rely on a webhook that is not registered yet."""
    said: list[object] = []
    register = WebhookRegistration.register

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):

            async def registered(registration: WebhookRegistration, sources: Sources) -> Mapping[PolicyKey, str]:
                names = [policy.name for policy in sources.legacy]
                if "late" in names:
                    said.append((await client.get(POLICIES, "late")).get("status"))
                elif "first" in names and not said:
                    made = await client.create(POLICIES, named("late"))
                    version = made["metadata"]["resourceVersion"]
                    await until(lambda: _seen(cluster, "late", version))
                return await register(registration, sources)

            monkeypatch.setattr(WebhookRegistration, "register", registered)
            await client.create(POLICIES, named("first"))

            async def is_ready() -> bool:
                return bool((await client.get(POLICIES, "first")).get("status")) and bool(said)

            await until(is_ready)

    asyncio.run(run())
    assert [None] == said[:1]


async def _seen(cluster: PolicySandbox, name: str, version: str) -> bool:
    return cluster.controller.has_seen(POLICIES, name, "", version)


def named(name: str) -> JSONObject:
    """Return a policy that every object passes."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    check = {"name": "rule", "match": match, "validate": {"pattern": {"metadata": {"name": "?*"}}}}
    metadata = {"name": name}
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [check]}}


def test_a_configuration_is_updated_and_never_recreated() -> None:
    """Between a deletion and a creation every request would pass unchecked."""
    notices: list[Notice] = []

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            informer = Informer(client, VALIDATING, fields=f"metadata.name={RESOURCES}")
            informer.listen(lambda notice, _: notices.append(notice))
            watching = asyncio.create_task(informer.run())
            await informer.synced.wait()
            for name in ("a", "b"):
                await client.create(POLICIES, named(name))
                await cluster.settle()
            await client.delete(POLICIES, "a")
            await client.delete(POLICIES, "b")
            await cluster.settle()

            async def is_empty() -> bool:
                return not (await client.get(VALIDATING, RESOURCES)).get("webhooks")

            await until(is_empty)
            watching.cancel()

    asyncio.run(run())
    assert {Notice.ADDED, Notice.MODIFIED} == set(notices)
    assert 1 == notices.count(Notice.ADDED)


@asynccontextmanager
async def leaving_replica(server: str = "") -> AsyncIterator[tuple[Client, AdmissionLeader]]:
    """Run a replica of the Deployment `us` that has never led, in a cluster with webhooks and a heartbeat."""
    parts, given = Tasks(), AdmissionSettings(namespace="default", deployment="us", server=server)
    given = replace(given, certificates=replace(given.certificates, namespace="default"))
    async with (
        Sandbox(Settings(controllers=False)) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
    ):
        hosts = HostFactory(client, given.hosts, KindTable)
        world = ClusterState(client, given.state, hosts, parts.start)
        await Heartbeat(client, "default").beat()
        for kind in ("Validating", "Mutating"):
            body = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{kind}WebhookConfiguration",
                "metadata": {"name": "ours", "labels": {"webhook.kyverno.io/managed-by": "kyverno"}},
            }
            await ConfigurationWriter(client).apply({**body, "webhooks": []})
            await ConfigurationWriter(client).apply({**body, "metadata": {"name": "foreign"}, "webhooks": []})
        yield client, AdmissionLeader(client, given.leader, world, Metrics())
        await hosts.close()


def test_a_new_term_restores_nothing_of_an_earlier_one() -> None:
    """Another replica led meanwhile: what it added would lose its webhook, while a rollout hinders new ones."""

    async def run() -> None:
        async with leaving_replica() as (client, leader):
            await leader.certificates.start()
            await leader._webhooks.configure()
            found = await client.get(VALIDATING, "kyverno-policy-validating-webhook-cfg")
            added = {**found["webhooks"][0], "name": "added.kyverno.svc"}
            ours = await client.get(VALIDATING, RESOURCES)
            await client.update(VALIDATING, {**ours, "webhooks": [added]})
            await leader._begin_term()
            await leader._webhooks._reconcile(_Key.RESTORE)
            [left] = (await client.get(VALIDATING, RESOURCES))["webhooks"]
            assert "added.kyverno.svc" == left["name"]

    asyncio.run(run())


def test_an_authority_that_is_published_is_not_restored_away() -> None:
    """Every change of a configuration restores what was written last; that trusted the authority before."""

    async def run() -> None:
        async with leaving_replica() as (_, leader):
            webhooks, certificates = leader._webhooks, leader.certificates
            await certificates.start()
            await webhooks.configure()
            before = certificates.bundle
            assert [before] == await webhooks.published()
            certificates._authority = make_authority("ECDSA", datetime.now(UTC))
            await webhooks.publish()
            assert before != certificates.bundle
            assert [certificates.bundle] == await webhooks.published()
            await webhooks._reconcile(_Key.RESTORE)
            assert [certificates.bundle] == await webhooks.published()

    asyncio.run(run())


def deployment(replicas: int) -> JSONObject:
    """Return the Deployment of the replica."""
    container = {"name": "a", "image": "a"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "us", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }


async def remaining(client: Client) -> tuple[list[str], bool]:
    """Return the names of the remaining webhook configurations, and whether the heartbeat remains."""
    names = [item["metadata"]["name"] for gvr in (VALIDATING, MUTATING) for item in (await client.list(gvr))["items"]]
    try:
        await client.get(LEASES, "kyverno-health", "default")
    except StatusError:
        return names, False
    return names, True


@pytest.mark.parametrize("replicas", [None, 0])
def test_the_last_replica_deletes_the_webhooks(replicas: int | None) -> None:
    """With the Deployment deleted or scaled to 0, webhooks with `Fail` would block every write."""

    async def run() -> None:
        async with leaving_replica() as (client, leader):
            if replicas is not None:
                await client.create(DEPLOYMENTS, deployment(replicas), "default")
            await leader.end(asyncio.create_task(asyncio.sleep(0)))
            assert (["foreign", "foreign"], False) == await remaining(client)

    asyncio.run(run())


@pytest.mark.parametrize("server", ["", "127.0.0.1:9443"])
def test_a_replica_with_successors_leaves_the_webhooks(server: str) -> None:
    """A replica outside of a cluster has no Deployment and leaves them as well."""

    async def run() -> None:
        async with leaving_replica(server) as (client, leader):
            if not server:
                await client.create(DEPLOYMENTS, deployment(1), "default")
            await leader.end(asyncio.create_task(asyncio.sleep(0)))
            assert (["foreign", "ours", "foreign", "ours"], True) == await remaining(client)

    asyncio.run(run())
