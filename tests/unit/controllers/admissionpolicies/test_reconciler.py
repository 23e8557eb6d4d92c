"""Admission policies in a cluster: created, updated, and deleted when the webhook has to evaluate the policy again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.controller import AdmissionSettings
from pyverno.controllers.admissionpolicies.reconciler import check_mutating
from pyverno.controllers.state.policystore import is_generated
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS, KindTable
from pyverno.kube.status import StatusError
from pyverno.telemetry.observer import Observers
from pyverno.testing import PolicySandbox

POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
COPIES = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
BINDINGS = GVR("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
WEBHOOKS = GVR("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations")
CONFIG_MAPS = GVR("", "v1", "configmaps")
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


def policy(expression: str = "object.metadata.name != 'bad'") -> JSONObject:
    """Return a policy that requests an admission policy."""
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
    """Return the paths of the webhook for resources."""
    found = await client.get(WEBHOOKS, "kyverno-resource-validating-webhook-cfg")
    return [hook["clientConfig"]["url"].partition("/vpol")[2] for hook in found.get("webhooks") or ()]


async def refusal(client: Client) -> str:
    """Return the error of creating an object that violates the policy."""
    try:
        await client.create(
            CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}}, "default"
        )
    except StatusError as error:
        return error.message
    return ""


def run_scene(play: Callable[[PolicySandbox, Client], Awaitable[None]], **settings: bool) -> None:
    """Run a scene in a cluster with policies in force."""

    async def run() -> None:
        wanted = AdmissionSettings(port=0, **settings)  # type: ignore[arg-type]  # flags that are on or off
        async with (
            PolicySandbox(Sandbox(Settings(kubelet=False)), Observers(), wanted) as cluster,
            Client(load_kubeconfig(cluster.sandbox.kubeconfig)) as client,
        ):
            await play(cluster, client)

    asyncio.run(run())


async def settle_twice(cluster: PolicySandbox) -> None:
    """Wait for the first round and for the second, which the status writes of the first trigger."""
    await cluster.settle()
    await cluster.settle()


def test_the_api_server_judges_by_the_copy_and_hands_the_policy_back() -> None:
    """The webhook has no path for a copied policy; once the copy is gone the webhook denies the same object."""

    async def play(cluster: PolicySandbox, client: Client) -> None:
        await client.create(POLICIES, policy())
        await settle_twice(cluster)
        assert ["vpol-names", "vpol-names-binding"] == await copies(client)
        assert is_generated(await client.get(POLICIES, "names"))
        assert [] == await paths(client)
        assert (await refusal(client)).startswith('configmaps "bad" is forbidden: ValidatingAdmissionPolicy')
        off = {"spec": {"autogen": {"validatingAdmissionPolicy": {"enabled": False}}}}
        await client.patch(POLICIES, "names", off)
        await settle_twice(cluster)
        assert [] == await copies(client)
        assert ["/names"] == await paths(client)
        assert (await refusal(client)).startswith('admission webhook "vpol.validate.kyverno.svc-fail"')

    run_scene(play)


def test_a_changed_policy_changes_its_copy_and_a_removed_one_takes_it_along() -> None:
    """Fields that the API server defaults cause no write."""

    async def play(cluster: PolicySandbox, client: Client) -> None:
        await client.create(POLICIES, policy())
        await settle_twice(cluster)
        first = await client.get(COPIES, "vpol-names")
        await client.patch(POLICIES, "names", {"metadata": {"labels": {"a": "b"}}})
        await settle_twice(cluster)
        assert first["metadata"]["generation"] == (await client.get(COPIES, "vpol-names"))["metadata"]["generation"]
        await client.patch(POLICIES, "names", {"spec": policy("object.metadata.name != 'worse'")["spec"]})
        await settle_twice(cluster)
        found = await client.get(COPIES, "vpol-names")
        assert "object.metadata.name != 'worse'" == found["spec"]["validations"][0]["expression"]
        await client.delete(POLICIES, "names")
        await settle_twice(cluster)
        assert [] == await copies(client)

    run_scene(play)


@pytest.mark.parametrize(
    "status", [{}, {"generated": False}, {"validatingadmissionpolicy": None}, {"generated": "true"}]
)
def test_only_a_plain_true_means_that_there_is_a_copy(status: JSONObject) -> None:
    """Any other value leaves the policy with the webhook."""
    assert not is_generated({"status": status})


MUTATING = GVR("policies.kyverno.io", "v1", "mutatingpolicies")


def mutating_policy(name: str, **spec: object) -> JSONObject:
    """Return a policy that adds a label."""
    patch = f"[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'by': '{name}'}}}}]"
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "MutatingPolicy",
        "metadata": {"name": name, "labels": {"reports.kyverno.io/disabled": "yes"}},
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            **spec,
        },
    }


def test_a_mutating_policy_becomes_an_admission_policy_when_its_spec_requests_it() -> None:
    """No flag is needed; until the setting is removed the webhook skips the policy, so a change is made once."""
    group = "admissionregistration.k8s.io"

    async def play(cluster: PolicySandbox, client: Client) -> None:
        asked = {"mutatingAdmissionPolicy": {"enabled": True}}
        made = await client.create(MUTATING, mutating_policy("copied", autogen=asked))
        await client.create(MUTATING, mutating_policy("ours", autogen=asked, evaluation={"useServerSideApply": True}))
        await settle_twice(cluster)
        version = "v1beta1"
        copy = await client.get(GVR(group, version, "mutatingadmissionpolicies"), "mpol-copied")
        binding = await client.get(GVR(group, version, "mutatingadmissionpolicybindings"), "mpol-copied-binding")
        assert {"app.kubernetes.io/managed-by": "kyverno", "reports.kyverno.io/disabled": "true"} == copy["metadata"][
            "labels"
        ]
        assert [("MutatingPolicy", "copied", made["metadata"]["uid"])] == [
            (each["kind"], each["name"], each["uid"]) for each in binding["metadata"]["ownerReferences"]
        ]
        assert "mpol-copied" == binding["spec"]["policyName"]
        status = (await client.get(MUTATING, "ours"))["status"]
        assert (False, True) == (
            status["generated"],
            status["conditionStatus"]["message"].startswith(
                "skip generating MutatingAdmissionPolicy: useServerSideApply is enabled"
            ),
        )
        await client.delete(MUTATING, "ours")
        await settle_twice(cluster)
        hooks = await client.get(
            GVR(group, "v1", "mutatingwebhookconfigurations"), "kyverno-resource-mutating-webhook-cfg"
        )
        assert [] == (hooks.get("webhooks") or [])
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
        stored = await client.create(CONFIG_MAPS, body, "default")
        assert {"by": "copied"} == stored["metadata"]["labels"]
        await client.patch(MUTATING, "copied", {"spec": {"autogen": {"mutatingAdmissionPolicy": {"enabled": False}}}})
        await settle_twice(cluster)
        assert [] == (await client.list(GVR(group, version, "mutatingadmissionpolicies")))["items"]
        assert not is_generated(await client.get(MUTATING, "copied"))

    run_scene(play)


def test_with_the_flag_the_status_of_every_mutating_policy_shows_whether_it_is_copied() -> None:
    """The condition tells a policy without the setting from one that has not been reconciled yet."""

    async def play(cluster: PolicySandbox, client: Client) -> None:
        await client.create(MUTATING, mutating_policy("ours"))
        await settle_twice(cluster)
        status = (await client.get(MUTATING, "ours"))["status"]
        assert "skip generating MutatingAdmissionPolicy: not enabled." == status["conditionStatus"]["message"]

    run_scene(play, generates_mutating=True)


def test_the_flag_needs_a_cluster_that_has_such_policies() -> None:
    """On an older API server the controller skips the copies instead of failing."""
    check_mutating(BUILTIN_KINDS)
    with pytest.raises(UsageError, match="the cluster has no MutatingAdmissionPolicies"):
        check_mutating(KindTable())
