"""A new background controller catches up with changes made while none was running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.background import World
from tests.unit.controllers.background.generating.test_rules import (
    CONFIG_MAPS,
    COPY,
    MADE,
    NAMESPACES,
    POLICIES,
    SECRETS,
    has_data,
    policy,
    secret,
)


@asynccontextmanager
async def background(cluster: PolicySandbox) -> AsyncIterator[None]:
    """Run one background controller."""
    stop = asyncio.Event()
    settings = BackgroundSettings(lease_retry=5.0, qps=0)
    controller = BackgroundController(load_kubeconfig(cluster.sandbox.kubeconfig), settings)
    running = asyncio.create_task(controller.run(stop))
    try:
        yield
    finally:
        stop.set()
        await running


def test_policies_triggers_and_sources_may_go_while_no_controller_runs() -> None:
    """It deletes objects of deleted policies, handles pending requests and copies edited sources."""

    async def act() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)
            await client.create(SECRETS, secret(), "default")
            await world.apply(POLICIES, policy(MADE, name="made"))
            await world.apply(POLICIES, policy(COPY, {**MADE, "name": "kept"}, name="kept"))
            async with background(cluster):
                for name in ("team", "gone"):
                    await world.namespace(name, team="a")
                    await world.appears(CONFIG_MAPS, "zones", name)
                    await world.appears(CONFIG_MAPS, "kept", name)
                    await world.appears(SECRETS, "pull", name)
            await client.delete(POLICIES, "made")
            await client.patch(NAMESPACES, "gone", {"metadata": {"labels": {"team": "b"}}})
            await client.patch(SECRETS, "pull", {"data": {"key": "Yg=="}}, "default")
            await cluster.settle()
            async with background(cluster):
                await world.vanishes(CONFIG_MAPS, "zones", "team")
                await world.vanishes(CONFIG_MAPS, "kept", "gone")
                await has_data(world, SECRETS, "pull", {"key": "Yg=="})
                assert await world.get(CONFIG_MAPS, "kept", "team") is not None

    asyncio.run(act())
