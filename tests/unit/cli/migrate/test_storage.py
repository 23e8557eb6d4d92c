"""`pyverno migrate --resource`: objects are stored again at the storage version."""

from __future__ import annotations

import asyncio

import pytest

from kubesandbox import Sandbox
from pyverno.cli.migrate.storage import store_objects
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

CRDS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
NAME = "widgets.example.com"


def _definition(stored: str) -> JSONObject:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": schema} for name in ("v1alpha1", "v1")
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    }


async def _prepared(client: Client, count: int) -> None:
    """Make objects at the old version, then make the new one the storage version."""
    await client.create(CRDS, _definition("v1alpha1"))
    old = GVR("example.com", "v1alpha1", "widgets")
    for number in range(count):
        body = {"apiVersion": "example.com/v1alpha1", "kind": "Widget", "metadata": {"name": f"w{number}"}}
        await client.create(old, {**body, "spec": {"number": number}}, "default")
    live = await client.get(CRDS, NAME)
    await client.update(CRDS, {**live, "spec": _definition("v1")["spec"]})


@pytest.mark.parametrize("dry_run", [False, True])
def test_stored_versions_hold_the_storage_version_only(dry_run: bool) -> None:
    """All objects keep what they hold; a dry run only counts them."""

    async def run() -> tuple[dict[str, int], list[str], list[int]]:
        with Sandbox() as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                await _prepared(client, 3)
                found = await store_objects(client, (NAME,), dry_run=dry_run)
                versions = (await client.get(CRDS, NAME))["status"]["storedVersions"]
                items = (await client.list(GVR("example.com", "v1", "widgets")))["items"]
                return found, versions, [each["spec"]["number"] for each in items]

    found, versions, numbers = asyncio.run(run())
    assert ({NAME: 3}, [0, 1, 2]) == (found, sorted(numbers))
    assert (["v1alpha1", "v1"] if dry_run else ["v1"]) == versions


def test_an_unknown_definition_is_an_error_of_the_user() -> None:
    """Its name is in the message."""

    async def run() -> None:
        with Sandbox() as sandbox:
            async with Client(load_kubeconfig(sandbox.kubeconfig, "", {}), qps=0) as client:
                await store_objects(client, ("things.example.com",))

    with pytest.raises(UsageError, match=r"there is no CustomResourceDefinition `things.example.com`"):
        asyncio.run(run())
