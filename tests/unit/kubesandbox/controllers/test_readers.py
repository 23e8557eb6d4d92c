"""Readers report every change, including those of later types and large numbers of them."""

from __future__ import annotations

import asyncio

from kubesandbox.storage.store import Key
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster
from tests.unit.kubesandbox.controllers.test_namespaces import CRD


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
