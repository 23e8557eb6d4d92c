"""A new background controller does not repeat changes of its predecessor."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.background import World
from tests.unit.controllers.background.generating.test_restarts import background
from tests.unit.controllers.background.generating.test_rules import CONFIG_MAPS, POLICIES

POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "append"},
    "spec": {
        "rules": [
            {
                "name": "append",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"], "names": ["trigger"]}}]},
                "mutate": {
                    "targets": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "good"},
                        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "bad"},
                    ],
                    "patchesJson6902": """
- {op: test, path: /data/is, value: good}
- {op: replace, path: /data/seen, value: "{{ target.data.seen }}x"}
""",
                },
            }
        ]
    },
}


def test_a_patch_that_appends_is_not_repeated_by_the_next_controller() -> None:
    """One of two targets fails; the UpdateRequest records that the other one is done."""

    async def act() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)

            async def create(name: str) -> None:
                data = {"is": name, "seen": ""}
                await client.create(
                    CONFIG_MAPS,
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data},
                    "default",
                )

            async def retries() -> int:
                listed = (await client.list(UPDATE_REQUESTS, "kyverno"))["items"]
                return max((int((each.get("status") or {}).get("retryCount") or 0) for each in listed), default=0)

            async def failed(times: int) -> bool:
                return await retries() >= times

            for name in ("good", "bad"):
                await create(name)
            await world.apply(POLICIES, POLICY)
            async with background(cluster):
                await create("trigger")
                await world.until(lambda: failed(1))
            before = await retries()
            async with background(cluster):
                await world.until(lambda: failed(before + 1))
                await client.patch(CONFIG_MAPS, "bad", {"data": {"is": "good"}}, "default")
                await world.until(lambda: _is_done(client))
            seen = [(await client.get(CONFIG_MAPS, name, "default"))["data"]["seen"] for name in ("good", "bad")]
            assert ["x", "x"] == seen

    asyncio.run(act())


async def _is_done(client: Client) -> bool:
    return not (await client.list(UPDATE_REQUESTS, "kyverno"))["items"]
