"""Replicas share shards: each shard has one worker at a time, and no replica keeps all of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.shards import Shards
from pyverno.kube.gvk import GVR

COUNT = 4
REQUEST = "pyverno.io/requested-by"


class Work:
    """Records which replica works on which shard, and whether two replicas ever overlapped."""

    def __init__(self) -> None:
        self.now: dict[int, str] = {}
        self.overlaps: list[tuple[int, str, str]] = []
        self.ended: list[tuple[int, str]] = []

    def of(self, replica: str) -> list[_Worker]:
        """Return the workers of a replica."""
        return [_Worker(self, replica, number) for number in range(COUNT)]

    def counts(self) -> Counter[str]:
        """Return how many shards each replica works on."""
        return Counter(self.now.values())


class _Worker:
    def __init__(self, work: Work, replica: str, number: int) -> None:
        self._work, self._replica, self._number = work, replica, number

    async def run(self) -> None:
        """Work until cancelled."""
        other = self._work.now.get(self._number)
        if other is not None:
            self._work.overlaps.append((self._number, other, self._replica))
        self._work.now[self._number] = self._replica
        try:
            await asyncio.Event().wait()
        finally:
            del self._work.now[self._number]
            self._work.ended.append((self._number, self._replica))


@asynccontextmanager
async def replica(client: Client, work: Work, name: str) -> AsyncIterator[Shards]:
    """Run one replica; at the end it releases its leases."""
    shards = Shards(client, work.of(name), name="work", namespace="default", identity=name, retry_seconds=0.05)
    running = asyncio.create_task(shards.run())
    try:
        yield shards
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await shards.release()


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    """Run a cluster."""
    async with (
        Sandbox(Settings(controllers=False)) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
    ):
        yield client


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


def test_replicas_share_the_shards_and_take_over_those_of_one_that_ends() -> None:
    """One replica holds all shards, two hold half each, and no shard ever has two workers."""

    async def run() -> None:
        async with cluster() as client:
            work = Work()
            async with replica(client, work, "a") as first:
                await until(lambda: work.counts() == {"a": COUNT})
                assert tuple(range(COUNT)) == first.held
                async with replica(client, work, "b"):
                    await until(lambda: work.counts() == {"a": 2, "b": 2})
                await until(lambda: work.counts() == {"a": COUNT})
            assert [] == work.overlaps
            assert {} == work.now

    asyncio.run(run())


def test_a_replica_that_crashed_is_replaced() -> None:
    """Its leases expire."""

    async def run() -> None:
        async with cluster() as client:
            work = Work()
            lost = Shards(client, work.of("a"), name="work", namespace="default", identity="a", retry_seconds=0.05)
            running = asyncio.create_task(lost.run())
            await until(lambda: work.counts() == {"a": COUNT})
            running.cancel()  # its leases are not released
            await asyncio.gather(running, return_exceptions=True)
            async with replica(client, work, "b"):
                await until(lambda: work.counts() == {"b": COUNT})
            assert [] == work.overlaps

    asyncio.run(run())


def test_a_request_of_a_deleted_replica_moves_no_shard() -> None:
    """A new holder clears the request to hand over and keeps the shard."""
    leases = GVR("coordination.k8s.io", "v1", "leases")

    async def requests(client: Client) -> list[str]:
        listed = await client.list(leases, "default")
        return [str((each["metadata"].get("annotations") or {}).get(REQUEST)) for each in listed["items"]]

    async def run() -> None:
        async with cluster() as client:
            work = Work()
            for number in range(COUNT):
                metadata = {"name": f"work-shard-{number}", "annotations": {REQUEST: "gone"}}
                spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
                await client.create(leases, body, "default")
            async with replica(client, work, "a"):
                async with asyncio.timeout(60):
                    while await requests(client) != ["None"] * COUNT:
                        await asyncio.sleep(0.02)
                assert [] == work.ended
                assert {"a": COUNT} == work.counts()

    asyncio.run(run())
