"""A sandbox with a journal restarts whatever its objects contain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.kube.gvk import GVR

HOOKS = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
ENDPOINTS = GVR("", "v1", "endpoints")
NOBODY: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "nobody"},
    "webhooks": [
        {
            "name": "nobody.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}


@pytest.mark.parametrize("moves", [False, True], ids=["same-port", "other-port"])
def test_a_webhook_without_a_server_does_not_keep_a_sandbox_from_starting(tmp_path: Path, moves: bool) -> None:
    """As with an API server, objects that cannot be written at the start are reported in the log."""

    async def run() -> None:
        first = Sandbox(Settings(controllers=False, data_dir=tmp_path))
        await first.start()
        async with Client(load_kubeconfig(first.kubeconfig), qps=0) as client:
            await client.create(HOOKS, NOBODY)
        port = int(first.url.rpartition(":")[2])
        await first.stop()
        again = Sandbox(Settings(controllers=False, data_dir=tmp_path, port=0 if moves else port))
        await again.start()
        try:
            async with Client(load_kubeconfig(again.kubeconfig), qps=0) as client:
                found = await client.get(ENDPOINTS, "kubernetes", "default")
                assert port == found["subsets"][0]["ports"][0]["port"]
        finally:
            await again.stop()

    asyncio.run(run())
