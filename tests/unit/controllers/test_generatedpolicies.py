"""Admission policies in a cluster: written, kept, handed back, taken away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.generatedpolicies import is_generated
from pyverno.controllers.policysandbox import PolicySandbox
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.sandbox.sandbox import Sandbox, Settings
from pyverno.webhook.observers import Observers

POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
COPIES = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
BINDINGS = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
WEBHOOKS = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
CONFIG_MAPS = GVR("", "v1", "configmaps")
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


def policy(expression: str = "object.metadata.name != 'bad'") -> JSONObject:
    """Return a policy that asks for its admission policy."""
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "names"},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "autogen": {"validatingAdmissionPolicy": {"enabled": True}},
            "validations": [{"expression": expression, "message": "a bad name"}],
        },
    }


async def copies(client: Client) -> list[str]:
    """Return the names of admission policies and bindings."""
    listed = [await client.list(gvr) for gvr in (COPIES, BINDINGS)]
    return [item["metadata"]["name"] for each in listed for item in each["items"]]


async def paths(client: Client) -> list[str]:
    """Return the paths on which the webhook is asked about resources."""
    found = await client.get(WEBHOOKS, "kyverno-resource-validating-webhook-cfg")
    return [hook["clientConfig"]["url"].partition("/vpol")[2] for hook in found.get("webhooks") or ()]


async def refusal(client: Client) -> str:
    """Return how a bad object is refused."""
    try:
        await client.create(
            CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}}, "default"
        )
    except StatusError as error:
        return error.message
    return ""


def played(play: Callable[[PolicySandbox, Client], Awaitable[None]]) -> None:
    """Run a scene in a cluster with policies at work."""

    async def run() -> None:
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers()) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await play(cluster, client)

    asyncio.run(run())


async def settled(cluster: PolicySandbox) -> None:
    """Wait for the second round as well, which follows what the first wrote into status."""
    await cluster.settle()
    await cluster.settle()


def test_the_api_server_judges_by_the_copy_and_hands_the_policy_back() -> None:
    """While there is a copy the webhook is not asked; without it the webhook is, and refuses the same."""

    async def play(cluster: PolicySandbox, client: Client) -> None:
        await client.create(POLICIES, policy())
        await settled(cluster)
        assert ["vpol-names", "vpol-names-binding"] == await copies(client)
        assert is_generated(await client.get(POLICIES, "names"))
        assert [] == await paths(client)
        assert (await refusal(client)).startswith('configmaps "bad" is forbidden: ValidatingAdmissionPolicy')
        off = {"spec": {"autogen": {"validatingAdmissionPolicy": {"enabled": False}}}}
        await client.patch(POLICIES, "names", off)
        await settled(cluster)
        assert [] == await copies(client)
        assert ["/names"] == await paths(client)
        assert (await refusal(client)).startswith('admission webhook "vpol.validate.kyverno.svc-fail"')

    played(play)


def test_a_changed_policy_changes_its_copy_and_a_removed_one_takes_it_along() -> None:
    """What the API server filled in is no reason to write."""

    async def play(cluster: PolicySandbox, client: Client) -> None:
        await client.create(POLICIES, policy())
        await settled(cluster)
        first = await client.get(COPIES, "vpol-names")
        await client.patch(POLICIES, "names", {"metadata": {"labels": {"a": "b"}}})
        await settled(cluster)
        assert first["metadata"]["generation"] == (await client.get(COPIES, "vpol-names"))["metadata"]["generation"]
        await client.patch(POLICIES, "names", {"spec": policy("object.metadata.name != 'worse'")["spec"]})
        await settled(cluster)
        found = await client.get(COPIES, "vpol-names")
        assert "object.metadata.name != 'worse'" == found["spec"]["validations"][0]["expression"]
        await client.delete(POLICIES, "names")
        await settled(cluster)
        assert [] == await copies(client)

    played(play)


@pytest.mark.parametrize(
    "status", [{}, {"generated": False}, {"validatingadmissionpolicy": None}, {"generated": "true"}]
)
def test_only_a_plain_true_says_that_there_is_a_copy(status: JSONObject) -> None:
    """Anything else leaves the policy with the webhook."""
    assert not is_generated({"status": status})
