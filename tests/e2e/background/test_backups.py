"""A cluster that is restored from a backup: objects are back with lower versions than the controller has seen."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.informer import STALE_SECONDS
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.testing import install_definitions
from tests.support.ports import free_port

MAPS = GVR("", "v1", "configmaps")
NAMESPACES = GVR("", "v1", "namespaces")
POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")


def _policy(data: str) -> JSONObject:
    """Return a policy that keeps a ConfigMap in each namespace of a team."""
    match = {"any": [{"resources": {"kinds": ["Namespace"], "selector": {"matchLabels": {"team": "yes"}}}}]}
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "namespace": "{{request.object.metadata.name}}"}
    generate = {**target, "synchronize": True, "generateExisting": True, "data": {"data": {"zone": data}}}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "zones"},
        "spec": {"rules": [{"name": "zones", "match": match, "generate": generate}]},
    }


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(STALE_SECONDS * 2):
        while not await holds():
            await asyncio.sleep(0.05)


def test_what_is_generated_is_kept_in_step_after_a_restore(tmp_path: Path) -> None:
    """The restored object has a lower version than the controller wrote; an edit of it is undone all the same."""
    data, backup = tmp_path / "data", tmp_path / "backup"

    async def run() -> None:
        sandbox = Sandbox(Settings(controllers=False, namespaces=("kyverno",), data_dir=data, port=free_port()))
        async with sandbox, Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client:
            await install_definitions(client)
            port, access = int(sandbox.url.rpartition(":")[2]), client.access
        settings = BackgroundSettings(lease_retry=5.0, qps=0, backoff=Backoff(first=0.05, longest=0.5))
        again = Settings(controllers=False, data_dir=data, port=port)
        stop = asyncio.Event()
        async with Client(access, qps=0) as client:

            async def has_zone(zone: str) -> bool:
                try:
                    found = await client.get(MAPS, "zones", "team")
                except StatusError:
                    return False
                return bool(found["data"]["zone"] == zone)

            async with Sandbox(again):
                controller = asyncio.create_task(BackgroundController(access, settings).run(stop))
                await client.create(POLICIES, _policy("one"))
                team = {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": "team", "labels": {"team": "yes"}},
                }
                await client.create(NAMESPACES, team)
                await client.patch(POLICIES, "zones", {"metadata": {"annotations": {"again": "1"}}})
                await client.patch(POLICIES, "zones", {"spec": {"background": True}})
                await _until(lambda: has_zone("one"))
            shutil.copytree(data, backup)
            async with Sandbox(again):
                rules = _policy("two")["spec"]["rules"]
                await client.patch(POLICIES, "zones", {"spec": {"rules": rules}})
                await _until(lambda: has_zone("two"))
            shutil.rmtree(data)
            shutil.copytree(backup, data)
            async with Sandbox(again):
                await _until(lambda: has_zone("one"))
                await client.patch(MAPS, "zones", {"data": {"zone": "mine"}}, "team")
                assert await has_zone("mine")
                await _until(lambda: has_zone("one"))
                assert not controller.done()
                stop.set()
                await controller

    asyncio.run(run())
