"""The background controller in a cluster: what it does with requests that nothing can work on."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, PolicySandbox


def test_a_request_that_cannot_be_done_stays_and_says_why() -> None:
    """The status holds the reason, and the request is still there to be retried."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(controllers=False)), Observers(), further=(BACKGROUND,)) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            body = {
                "apiVersion": "kyverno.io/v2",
                "kind": "UpdateRequest",
                "metadata": {"name": "ur-odd", "namespace": "kyverno"},
                "spec": {
                    "requestType": "mutate",
                    "policy": "gone",
                    "rule": "x",
                    "resource": {},
                    "context": {},
                    "extra": 1,
                },
            }
            await client.create(UPDATE_REQUESTS, body, "kyverno")
            async with asyncio.timeout(10):
                while True:
                    found = await client.get(UPDATE_REQUESTS, "ur-odd", "kyverno")
                    if (found.get("status") or {}).get("state") == "Failed":
                        break
                    await asyncio.sleep(0.05)
            assert found["status"]["message"]

    asyncio.run(run())
