"""Releasing a cluster: replicas are stopped, and webhooks and generated admission policies are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubesandbox.sandbox import Sandbox
from kubesandbox.sandbox import Settings as SandboxSettings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.webhooks.release import purge, release
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

GROUP = "admissionregistration.k8s.io"
DEPLOYMENTS = GVR("apps", "v1", "deployments")
HOOKS = {kind: GVR(GROUP, "v1", f"{kind}webhookconfigurations") for kind in ("validating", "mutating")}
POLICIES = GVR(GROUP, "v1", "validatingadmissionpolicies")
OWNER = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "name": "a", "uid": "1"}


def hook_configuration(kind: str, name: str, labels: dict[str, str]) -> JSONObject:
    """Return a webhook configuration without webhooks."""
    kind = f"{kind.capitalize()}WebhookConfiguration"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "webhooks": []}


def admission_policy(name: str, *owners: JSONObject) -> JSONObject:
    """Return a ValidatingAdmissionPolicy with the label of generated ones."""
    metadata = {"name": name, "labels": {"app.kubernetes.io/managed-by": "kyverno"}, "ownerReferences": list(owners)}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}


def deployment(name: str, part_of: str) -> JSONObject:
    """Return a Deployment of two replicas."""
    labels = {"app.kubernetes.io/part-of": part_of}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "example.org/a:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


async def fill(client: Client) -> None:
    """Create what the controllers leave in a cluster, and the same kinds of others."""
    for kind, gvr in HOOKS.items():
        await client.create(gvr, hook_configuration(kind, "ours", {"webhook.kyverno.io/managed-by": "kyverno"}))
        await client.create(gvr, hook_configuration(kind, "theirs", {}))
    await client.create(POLICIES, admission_policy("generated", OWNER))
    await client.create(POLICIES, admission_policy("theirs"))
    await client.create(DEPLOYMENTS, deployment("kyverno-admission-controller", "kyverno"), "default")
    await client.create(DEPLOYMENTS, deployment("shop", "shop"), "default")


async def names(client: Client, gvr: GVR) -> list[str]:
    """Return the names of all objects of a kind."""
    return [item["metadata"]["name"] for item in (await client.list(gvr))["items"]]


def play(scene: Callable[[Client], Awaitable[None]], *, controllers: bool) -> None:
    """Run a scene in a fresh cluster."""

    async def run() -> None:
        async with (
            Sandbox(SandboxSettings(controllers=controllers)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await scene(client)

    asyncio.run(run())


def test_own_objects_are_deleted_and_those_of_others_stay() -> None:
    """Both kinds of configurations and generated policies are deleted; a second run finds no replicas to stop."""

    async def scene(client: Client) -> None:
        await fill(client)
        assert ["kyverno-admission-controller"] == await release(client, "default", seconds=30)
        assert [["theirs"]] * 3 == [await names(client, gvr) for gvr in (*HOOKS.values(), POLICIES)]
        found = {
            item["metadata"]["name"]: item["spec"]["replicas"] for item in (await client.list(DEPLOYMENTS))["items"]
        }
        assert {"kyverno-admission-controller": 0, "shop": 2} == found
        assert [] == await release(client, "default", seconds=30)

    play(scene, controllers=True)


def test_replicas_that_do_not_end_are_an_error() -> None:
    """They could write the webhooks again, so the error names their Deployment; the webhooks are deleted anyway."""

    async def scene(client: Client) -> None:
        await fill(client)
        name = "kyverno-admission-controller"
        await client.patch(DEPLOYMENTS, name, {"status": {"replicas": 2}}, "default", subresource="status")
        with pytest.raises(HostError, match="replicas still run after 0s: kyverno-admission-controller"):
            await release(client, "default", seconds=0)
        assert ["theirs"] == await names(client, HOOKS["validating"])

    play(scene, controllers=False)


def test_purging_leaves_the_certificates_of_others() -> None:
    """Labelled certificates and leases of the controllers are deleted; a Secret of a user stays."""
    secrets, leases = GVR("", "v1", "secrets"), GVR("coordination.k8s.io", "v1", "leases")
    made, given = (f"kyverno-svc.default.svc.kyverno-tls-{word}" for word in ("ca", "pair"))

    async def scene(client: Client) -> None:
        label = {"cert.kyverno.io/managed-by": "kyverno"}
        await client.create(secrets, {"metadata": {"name": made, "labels": label}}, "default")
        await client.create(secrets, {"metadata": {"name": given}}, "default")
        await client.create(leases, {"metadata": {"name": "kyverno-health"}, "spec": {}}, "default")
        await purge(client, "default")
        assert ([given], []) == (await names(client, secrets), await names(client, leases))
        await purge(client, "default")

    play(scene, controllers=False)
