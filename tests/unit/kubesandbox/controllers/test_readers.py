"""Readers report every change, including those of later types and large numbers of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from kubesandbox.controllers.readers import Readers
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


def test_a_listener_that_breaks_ends_no_reader() -> None:
    """The changes after the one that it could not take are reported."""
    told: list[str] = []

    class Client:
        """Has three changes."""

        async def changes(self, resource: str) -> AsyncIterator[str]:
            for change in ("one", "broken", "three"):
                yield change
            await asyncio.Event().wait()

    def tell(resource: str, change: Any) -> None:
        if change == "broken":
            raise KeyError(change)
        told.append(change)

    async def run() -> None:
        client: Any = Client()
        types: Any = lambda: [SimpleNamespace(key="pods", verbs=("watch",))]  # noqa: E731
        readers = Readers(client, types, tell)
        readers.start()
        async with asyncio.timeout(30):
            while "three" not in told:
                await asyncio.sleep(0)
        await readers.stop()

    asyncio.run(run())
    assert ["one", "three"] == told
