"""Policies with failing background work have a condition with the reason."""

from __future__ import annotations

import asyncio

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.background.controller import BackgroundController, BackgroundSettings
from pyverno.controllers.background.policyconditions import policy_of
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.kube.json import JSONObject
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox
from tests.support.background import World
from tests.unit.controllers.background.generating.test_rules import COPY, POLICIES, SECRETS, policy, secret

RULE: JSONObject = {
    "name": "change",
    "match": {"any": [{"resources": {"kinds": ["Namespace"]}}]},
    "mutate": {
        "targets": [{"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "default", "name": "a"}],
        "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}},
    },
}


def test_a_policy_shows_why_its_work_is_not_done_until_it_is() -> None:
    """Reasons are a missing source and a kind that is not served; conditions of the admission controller stay."""

    async def act() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig), qps=0) as client,
        ):
            world = World(cluster, client)
            stop = asyncio.Event()
            settings = BackgroundSettings(
                lease_retry=5.0, qps=0, condition_seconds=0.1, backoff=Backoff(first=0.05, longest=0.2)
            )
            controller = BackgroundController(load_kubeconfig(cluster.sandbox.kubeconfig), settings)
            running = asyncio.create_task(controller.run(stop))

            async def conditions(name: str) -> dict[str, tuple[str, str, str]]:
                status = (await client.get(POLICIES, name)).get("status") or {}
                return {
                    each["type"]: (each["status"], each["reason"], each["message"])
                    for each in status.get("conditions") or ()
                }

            async def shows(name: str, text: str) -> bool:
                return text in str((await conditions(name)).get("BackgroundWorkDone"))

            try:
                await world.apply(POLICIES, policy(COPY))
                changing = policy(name="change")
                changing["spec"]["rules"] = [RULE]
                await world.apply(POLICIES, changing)
                await world.namespace("team", team="a")
                await world.until(lambda: shows("copy", "Secret/default/pull not found"))
                await world.until(lambda: shows("change", "does not serve Widget of example.com/v1"))
                found = await conditions("copy")
                assert ("True", "Succeeded", "Ready") == found["Ready"]
                assert ("False", "Waiting") == found["BackgroundWorkDone"][:2]
                await client.create(SECRETS, secret(), "default")
                await world.until(lambda: shows("copy", "True"))
                await cluster.settle()
                assert {"Ready", "BackgroundWorkDone"} == (await conditions("copy")).keys()
                for each in (await client.list(UPDATE_REQUESTS, "kyverno"))["items"]:
                    await client.delete(UPDATE_REQUESTS, each["metadata"]["name"], "kyverno")
                await world.until(lambda: shows("change", "True"))
            finally:
                stop.set()
                await running

    asyncio.run(act())


def test_requests_name_their_policy_by_type() -> None:
    """The namespace distinguishes namespaced policies from cluster policies."""
    found = [
        policy_of({"requestType": kind, "policy": key})
        for kind in ("generate", "mutate", "cel-generate", "cel-mutate")
        for key in ("a", "n/a")
    ]
    assert [
        ("kyverno.io/ClusterPolicy", "", "a"),
        ("kyverno.io/Policy", "n", "a"),
        ("kyverno.io/ClusterPolicy", "", "a"),
        ("kyverno.io/Policy", "n", "a"),
        ("policies.kyverno.io/GeneratingPolicy", "", "a"),
        ("policies.kyverno.io/NamespacedGeneratingPolicy", "n", "a"),
        ("policies.kyverno.io/MutatingPolicy", "", "a"),
        ("policies.kyverno.io/NamespacedMutatingPolicy", "n", "a"),
    ] == found
    assert policy_of({"requestType": "else"}) is None
