"""`PolicySandbox`: a cluster in this process in which policies are at work."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

POLICIES = GVR("kyverno.io", "v1", "clusterpolicies")
CONFIG_MAPS = GVR("", "v1", "configmaps")
POLICY: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "owners"},
    "spec": {
        "rules": [
            {
                "name": "owner",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
                "validate": {
                    "failureAction": "Enforce",
                    "message": "an owner is required",
                    "pattern": {"metadata": {"labels": {"owner": "?*"}}},
                },
            },
            {
                "name": "team",
                "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
                "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(team)": "bravo"}}}},
            },
        ]
    },
}


def _config_map(name: str, **labels: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def test_a_policy_refuses_and_changes_what_is_created() -> None:
    """Once `settle` returns, a policy that was created before is at work, and its status says so."""

    async def play() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await client.create(POLICIES, POLICY)
            await cluster.settle()
            with pytest.raises(StatusError, match="an owner is required"):
                await client.create(CONFIG_MAPS, _config_map("bare"), "default")
            made = await client.create(CONFIG_MAPS, _config_map("good", owner="ann"), "default")
            assert {"owner": "ann", "team": "bravo"} == made["metadata"]["labels"]
            stored = await client.get(POLICIES, "owners")
            assert ["Ready"] == [each["message"] for each in stored["status"]["conditions"]]

    asyncio.run(play())


def test_a_sandbox_gives_up_after_the_given_time() -> None:
    """A busy machine needs more than the default, and a test of the start less."""

    async def play() -> None:
        cluster = PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), ready_seconds=0.0)
        with pytest.raises(HostError, match="did not get ready within 0 seconds"):
            await cluster.__aenter__()

    asyncio.run(play())
