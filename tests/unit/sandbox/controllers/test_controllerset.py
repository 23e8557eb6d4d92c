"""All controllers together: started, told of everything, stopped."""

from __future__ import annotations

import asyncio

from pyverno.sandbox.controllers.controllerset import ControllerSet
from pyverno.sandbox.controllers.roster import ROSTER
from pyverno.sandbox.store import Key
from tests.unit.sandbox.controllers.cluster import Cluster, HandClock, in_cluster, workload
from tests.unit.sandbox.controllers.test_namespaces import CRD


@in_cluster
async def test_custom_resources_are_watched_as_soon_as_they_are_served(cluster: Cluster) -> None:
    """An owner of a new kind that goes takes its dependents along."""
    await cluster.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
    toy = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "ball", "namespace": "default"}}
    owner = await cluster.create("toys.example.com", toy)
    reference = {"apiVersion": "example.com/v1", "kind": "Toy", "name": "ball", "uid": owner["metadata"]["uid"]}
    metadata = {"name": "skin", "namespace": "default", "ownerReferences": [reference]}
    await cluster.create("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert "skin" in cluster.names("configmaps")
    await cluster.client.delete("toys.example.com", "ball", "default")
    await cluster.settle()
    assert "skin" not in cluster.names("configmaps")


def test_what_was_begun_is_finished_after_a_restart() -> None:
    """Nothing is kept but what the store holds, and stopping leaves no task behind."""

    async def run() -> None:
        async with Cluster() as cluster:
            await cluster.controllers.stop()
            assert 1 == len(asyncio.all_tasks())
            await cluster.client.create("deployments.apps", workload("Deployment", "web", replicas=2))
            await asyncio.sleep(0.01)
            assert [] == cluster.names("pods")
            again = ControllerSet(cluster.controllers.surroundings, clock=HandClock())
            await again.start(cluster.server)
            assert 2 == cluster.get("deployments.apps", "web")["status"]["availableReplicas"]
            await again.stop()

    asyncio.run(run())


def test_a_reader_that_fell_behind_looks_at_everything_again() -> None:
    """Here the store keeps three changes, and twenty come at once."""

    async def run() -> None:
        async with Cluster(kept_changes=3) as cluster:
            for number in range(20):
                metadata = {"name": f"n{number}"}
                body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
                cluster.server.store.put(Key("namespaces", "", f"n{number}"), body)
            await cluster.settle()
            assert all(["default"] == cluster.names("serviceaccounts", f"n{number}") for number in range(20))

    asyncio.run(run())


@in_cluster
async def test_every_controller_writes_as_its_own_user(cluster: Cluster) -> None:
    """Managed fields tell who."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=1))
    managers = {
        key: {entry["manager"] for entry in cluster.client.list(key, "default")[0]["metadata"]["managedFields"]}
        for key in ("replicasets.apps", "pods")
    }
    assert {"deployment-controller", "replicaset-controller"} == managers["replicasets.apps"]
    assert {"replicaset-controller", "sandbox"} <= managers["pods"]
    assert len(ROSTER) == len({post.name for post in ROSTER})
