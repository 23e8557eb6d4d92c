"""All controllers together: start, changes, stop."""

from __future__ import annotations

import asyncio

from kubesandbox.controllers.controllerset import ControllerSet
from kubesandbox.controllers.registry import CONTROLLERS
from tests.unit.kubesandbox.controllers.cluster import Cluster, HandClock, in_cluster, workload


def test_what_was_begun_is_finished_after_a_restart() -> None:
    """Nothing is kept but what the store holds, and stopping leaves no task behind."""

    async def run() -> None:
        async with Cluster() as cluster:
            await cluster.controllers.stop()
            assert 1 == len(asyncio.all_tasks())
            await cluster.client.create("deployments.apps", workload("Deployment", "web", replicas=2))
            assert 1 == len(asyncio.all_tasks())
            assert [] == cluster.names("pods")
            again = ControllerSet(cluster.controllers.settings, clock=HandClock())
            await again.start(cluster.server)
            assert 2 == cluster.get("deployments.apps", "web")["status"]["availableReplicas"]
            await again.stop()

    asyncio.run(run())


@in_cluster
async def test_every_controller_writes_as_its_own_user(cluster: Cluster) -> None:
    """The managed fields name that user."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=1))
    managers = {
        key: {entry["manager"] for entry in cluster.client.list(key, "default")[0]["metadata"]["managedFields"]}
        for key in ("replicasets.apps", "pods")
    }
    assert {"deployment-controller", "replicaset-controller"} == managers["replicasets.apps"]
    assert {"replicaset-controller", "sandbox"} <= managers["pods"]
    assert len(CONTROLLERS) == len({spec.name for spec in CONTROLLERS})


@in_cluster
async def test_nothing_runs_while_nothing_happens(cluster: Cluster) -> None:
    """Only the readers' tasks exist, and they wait: no polling, no task per controller."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=2))
    revision = cluster.server.store.revision
    running = {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    assert all(name.startswith("reader of ") for name in running)
    assert revision == cluster.server.store.revision
