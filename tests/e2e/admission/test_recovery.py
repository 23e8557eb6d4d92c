"""A cluster whose policies match everything recovers by itself after all replicas are gone.

The controllers are installed as `pyverno install` prints it, in a sandbox with RBAC, and have the rights of their
service account only: a webhook that matches their own namespace would lock them out for ever.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kubesandbox import Sandbox
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.install.manifests import InstallSettings, manifests
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from tests.e2e.admission.deployment import CONFIG_MAPS, POLICIES, Deployment, install, until
from tests.e2e.admission.load import config_map

ACCOUNT = "kyverno-admission-controller"
LEASES = GVR("coordination.k8s.io", "v1", "leases")
PODS = GVR("", "v1", "pods")
CEL_POLICIES = GVR("policies.kyverno.io", "v1", "validatingpolicies")
_RUNNING = ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
_FORBIDDEN = "no object may be called forbidden"


def _rule(name: str, **action: JSONObject) -> JSONObject:
    return {"name": name, "match": {"any": [{"resources": {"kinds": ["*"]}}]}, **action}


EVERYTHING: JSONObject = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "everything"},
    "spec": {
        "background": False,
        "rules": [
            _rule("add", mutate={"patchStrategicMerge": {"metadata": {"labels": {"+(seen)": "yes"}}}}),
            _rule(
                "name",
                validate={
                    "failureAction": "Enforce",
                    "message": _FORBIDDEN,
                    "pattern": {"metadata": {"name": "!forbidden"}},
                },
            ),
        ],
    },
}
EVERYTHING_IN_CEL: JSONObject = {
    "apiVersion": "policies.kyverno.io/v1",
    "kind": "ValidatingPolicy",
    "metadata": {"name": "everything"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]
        },
        "validations": [{"expression": "request.name != 'forbidden'", "message": "no, said in CEL"}],
    },
}


async def _write(client: Client, *bodies: JSONObject) -> None:
    kinds = await discover(client)
    for body in bodies:
        info = kinds.find(GVK(*parse_api_version(body["apiVersion"]), body["kind"]))
        assert info is not None, body["kind"]
        try:
            await client.create(info.gvr, body, body["metadata"].get("namespace") or "")
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise


async def _access_of_the_account(client: Client, folder: Path) -> str:
    """Return a file with the access of the controllers' service account."""
    token = await client.request(
        "POST",
        f"/api/v1/namespaces/kyverno/serviceaccounts/{ACCOUNT}/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    authority = folder / "ca.pem"
    authority.write_bytes(client.access.ca)
    found = folder / "kubeconfig.json"
    cluster = {"server": client.access.server, "certificate-authority": str(authority)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {"token": token["status"]["token"]}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    found.write_text(json.dumps(document))
    return str(found)


async def _refusal(client: Client, name: str, namespace: str = "default") -> str:
    body = config_map(name)
    body["metadata"]["namespace"] = namespace
    try:
        await client.create(CONFIG_MAPS, body, namespace, query={"dryRun": "All"})
    except StatusError as error:
        return error.message
    return ""


async def _is_in_force(client: Client) -> bool:
    return _FORBIDDEN in await _refusal(client, "forbidden") and not await _refusal(client, "harmless")


def test_a_cluster_with_policies_about_everything_starts_again_by_itself(tmp_path: Path) -> None:
    """Without replicas every request is denied except those for the controllers' leases, Secrets and pods."""

    async def scene(client: Client, kubeconfig: str) -> None:
        async with Deployment(kubeconfig, tmp_path) as deployment:
            await deployment.ready(*await deployment.start(2))
            await client.create(POLICIES, EVERYTHING)
            await client.create(CEL_POLICIES, EVERYTHING_IN_CEL)
            await until("the policies are in force", lambda: _is_in_force(client))
            await until("the leader has written its heartbeat", lambda: _beats(client))
            await deployment.kill_all()

            assert "failed calling webhook" in await _refusal(client, "harmless")
            with pytest.raises(StatusError, match="failed calling webhook"):
                await client.delete(CONFIG_MAPS, "kube-root-ca.crt", "default")
            assert not await _refusal(client, "harmless", "kyverno")
            await client.create(PODS, _pod(), "kyverno")

            await deployment.ready(*await deployment.start())
            await until("the policies are in force again", lambda: _is_in_force(client))
            # the new replica leads: what is written from now on comes into force
            await client.delete(POLICIES, "everything")
            await client.delete(CEL_POLICIES, "everything")
            await until("deleted policies are no longer asked", lambda: _is_allowed(client))

    async def run() -> None:
        async with (
            Sandbox(kubelet=False) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            await install(client)
            printed = [body for body in manifests(InstallSettings()) if body["kind"] not in _RUNNING]
            await _write(client, *printed)
            await scene(client, await _access_of_the_account(client, tmp_path))

    asyncio.run(run())


def _pod() -> JSONObject:
    container = {"name": "a", "image": "registry.example.org/a:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "replica", "namespace": "kyverno"},
        "spec": {"containers": [container], "serviceAccountName": ACCOUNT},
    }


async def _is_allowed(client: Client) -> bool:
    return not await _refusal(client, "forbidden")


async def _beats(client: Client) -> bool:
    names = {item["metadata"]["name"] for item in (await client.list(LEASES, "kyverno"))["items"]}
    return {"kyverno", "kyverno-health"} <= names
