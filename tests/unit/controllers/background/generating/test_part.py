"""Replicas share the work of generating: UpdateRequests, and the synchronization of generated objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.kube.gvk import GVR
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.background import World
from tests.unit.controllers.background.generating.test_lists import COPIES
from tests.unit.controllers.background.generating.test_rules import (
    CONFIG_MAPS,
    MADE,
    POLICIES,
    SECRETS,
    has_data,
    policy,
    secret,
)

LEASES = GVR("coordination.k8s.io", "v1", "leases")
SHARDS = 2
TEAMS = 6


@asynccontextmanager
async def replica(cluster: PolicySandbox, name: str) -> AsyncIterator[Metrics]:
    """Run one of several replicas."""
    stop, metrics = asyncio.Event(), Metrics()
    settings = BackgroundSettings(identity=name, lease_retry=0.5, qps=0, shards=SHARDS)
    controller = BackgroundController(load_kubeconfig(cluster.sandbox.kubeconfig), settings, metrics)
    running = asyncio.create_task(controller.run(stop))
    try:
        yield metrics
    finally:
        stop.set()
        await running


async def holders(client: Client) -> list[str]:
    """Return the replicas that hold the shards."""
    listed = await client.list(LEASES, "kyverno")
    return [each["spec"].get("holderIdentity") for each in listed["items"] if "-shard-" in each["metadata"]["name"]]


def reconciled(metrics: Metrics, controller: str) -> float:
    """Return how often a controller reconciled, from its metric."""
    lines = metrics.exposition().decode().splitlines()
    name = "kyverno_controller_reconcile_total{"
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name) and f'"{controller}"' in line)


def test_replicas_generate_their_share_and_take_over_what_another_one_generated() -> None:
    """Both replicas handle requests and follow sources; the remaining one copies a new source for every trigger."""
    teams: list[str] = []

    async def act() -> None:
        async with (
            asyncio.timeout(600),
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)

            async def is_shared() -> bool:
                found = await holders(client)
                return sorted(found) == ["a", "b"]

            async def create(name: str) -> None:
                await world.namespace(name, team="a")
                await world.appears(SECRETS, "one", name)
                await world.appears(CONFIG_MAPS, "zones", name)
                teams.append(name)

            async def edit(text: str) -> None:
                await client.patch(SECRETS, "one", {"data": {"key": text}}, "default")
                for name in teams:
                    await has_data(world, SECRETS, "one", {"key": text}, name)

            await client.create(SECRETS, secret("one", shared="yes"), "default")
            await world.apply(POLICIES, policy(COPIES, MADE))
            async with replica(cluster, "a") as first:
                async with replica(cluster, "b") as second:
                    await world.until(is_shared)
                    replicas = (first, second)
                    # a lease that is late under load moves shards for a while: continue until both replicas have worked
                    while len(teams) < TEAMS or not all(reconciled(each, "update-request") for each in replicas):
                        await create(f"team-{len(teams)}")
                    await client.delete(CONFIG_MAPS, "zones", teams[0])
                    await edit("Yg==")
                    while not all(reconciled(each, "generate") for each in replicas):
                        await edit("Yw==")
                        await edit("Yg==")
                    await world.appears(CONFIG_MAPS, "zones", teams[0])
                await client.create(SECRETS, secret("two", shared="yes"), "default")
                for name in teams:
                    await world.appears(SECRETS, "two", name)
                await client.delete(POLICIES, "copy")
                for name in teams:
                    await world.vanishes(SECRETS, "two", name)
                    await world.vanishes(CONFIG_MAPS, "zones", name)

    asyncio.run(act())
