"""Release a cluster from the controllers: stop them, and delete what makes the API server depend on them.

Nothing here needs a running controller, and running it again is harmless. Policies, definitions and reports stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.state.recordkeys import RECORD_KEYS
from pyverno.controllers.webhooks.writer import ConfigurationWriter
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["purge", "release"]

_DEPLOYMENTS: Final = GVR("apps", "v1", "deployments")
_PART_OF: Final = {"labelSelector": "app.kubernetes.io/part-of=kyverno"}
_GENERATED: Final = {"labelSelector": "app.kubernetes.io/managed-by=kyverno"}
_OWNER_GROUPS: Final = ("kyverno.io/", "policies.kyverno.io/")
_VERSIONS: Final = {"validating": ("v1", "v1beta1"), "mutating": ("v1", "v1beta1", "v1alpha1")}
_INTERVAL: Final = 0.5
_SECRETS: Final = GVR("", "v1", "secrets")
_LEASES: Final = GVR("coordination.k8s.io", "v1", "leases")
_CERTIFICATES: Final = ("kyverno-tls-ca", "kyverno-tls-pair")
_MANAGED_LABEL: Final = "cert.kyverno.io/managed-by"
_LEASE_NAMES: Final = (
    *("kyverno", "kyverno-health", "kyvernopre-lock"),
    *(f"kyverno-{part}-controller" for part in ("background", "reports", "cleanup")),
)


async def release(client: Client, namespace: str, *, seconds: float) -> list[str]:
    """Scale the controllers to zero and delete their webhook configurations and generated admission policies.

    Repeats the deletion until no replica is left that could write them again. Returns the names of the Deployments
    that were stopped. Raises HostError after `seconds`, and for what the API server refuses.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    writer = ConfigurationWriter(client)
    await writer.remove_all()
    stopped = await _stop(client, namespace)
    while True:
        running = await _running(client, namespace)
        await writer.remove_all()
        async for gvr, item in _list_generated(client):
            await _delete(client, gvr, item["metadata"]["name"])
        if not running:
            return stopped
        if asyncio.get_running_loop().time() > deadline:
            raise HostError(
                f"the webhooks are deleted, but replicas still run after {seconds:g}s: {', '.join(running)}"
            )
        await asyncio.sleep(_INTERVAL)


async def purge(client: Client, namespace: str) -> None:
    """Delete the certificates, keys and leases that the controllers made in their namespace; Secrets of others stay."""
    for name in (f"kyverno-svc.{namespace}.svc.{word}" for word in _CERTIFICATES):
        try:
            found = await client.get(_SECRETS, name, namespace)
        except StatusError as error:
            if error.status != 404:
                raise
            continue
        if _MANAGED_LABEL in (found["metadata"].get("labels") or {}):
            await _delete(client, _SECRETS, name, namespace)
    await _delete(client, _SECRETS, RECORD_KEYS, namespace)
    for name in _LEASE_NAMES:
        await _delete(client, _LEASES, name, namespace)


async def _stop(client: Client, namespace: str) -> list[str]:
    names = []
    for item in (await client.list(_DEPLOYMENTS, namespace, query=_PART_OF))["items"]:
        if item["spec"].get("replicas", 1):
            name = item["metadata"]["name"]
            await client.patch(_DEPLOYMENTS, name, {"spec": {"replicas": 0}}, namespace, subresource="scale")
            names.append(name)
    return names


async def _running(client: Client, namespace: str) -> list[str]:
    found = (await client.list(_DEPLOYMENTS, namespace, query=_PART_OF))["items"]
    return [item["metadata"]["name"] for item in found if (item.get("status") or {}).get("replicas")]


async def _list_generated(client: Client) -> AsyncIterator[tuple[GVR, JSONObject]]:
    """Yield admission policies that were generated from policies, and their bindings, which come first."""
    for word, versions in _VERSIONS.items():
        for noun in ("policybindings", "policies"):
            for version in versions:
                gvr = GVR("admissionregistration.k8s.io", version, f"{word}admission{noun}")
                try:
                    listed = await client.list(gvr, query=_GENERATED)
                except StatusError as error:
                    if error.status == 404:
                        continue  # this cluster does not serve this version
                    raise
                for item in listed["items"]:
                    if _has_policy_owner(item):
                        yield gvr, item
                break


def _has_policy_owner(item: JSONObject) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(str(owner.get("apiVersion")).startswith(_OWNER_GROUPS) for owner in owners)


async def _delete(client: Client, gvr: GVR, name: str, namespace: str = "") -> None:
    try:
        await client.delete(gvr, name, namespace)
    except StatusError as error:
        if error.status != 404:
            raise
