"""Objects of a CustomResourceDefinition stored again at its storage version, so that old versions can be removed.

Every object is read and written unchanged; the API server converts it. Then `status.storedVersions` names the storage
version only. An object that another client changes in between is read again.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from pyverno.cli.terminal import STDERR, STDOUT
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.errors import PyvernoError, UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

# trust rows: environment

__all__ = ["store_again", "store_objects"]

_CRD: Final = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_ATTEMPTS: Final = 5
_NOT_FOUND, _CONFLICT = 404, 409


def store_again(names: tuple[str, ...], *, kubeconfig: str, context: str, dry_run: bool) -> int:
    """Store the objects of definitions again, and return the exit code."""

    async def work() -> dict[str, int]:
        async with Client(load_kubeconfig(kubeconfig, context, os.environ)) as client:
            return await store_objects(client, names, dry_run=dry_run)

    try:
        found = asyncio.run(work())
    except PyvernoError as error:
        STDERR.write(f"Error: {error}\n")
        return 2 if isinstance(error, UsageError) else 1
    for name, count in found.items():
        STDOUT.write(f"{name}: {count} objects {'to store' if dry_run else 'stored'} at the storage version\n")
    return 0


async def store_objects(client: Client, names: tuple[str, ...], *, dry_run: bool = False) -> dict[str, int]:
    """Write every object of these definitions back as it is, then note the storage version as the only stored one."""
    found: dict[str, int] = {}
    for name in names:
        try:
            definition = await client.get(_CRD, name)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            raise UsageError(f"there is no CustomResourceDefinition `{name}`") from None
        spec = definition["spec"]
        version = next(each["name"] for each in spec["versions"] if each.get("storage"))
        gvr = GVR(spec["group"], version, spec["names"]["plural"])
        items: list[JSONObject] = (await client.list(gvr))["items"]
        found[name] = len(items)
        if dry_run:
            continue
        for body in items:
            await _store(client, gvr, body)
        await _note_version(client, name, version)
    return found


async def _store(client: Client, gvr: GVR, body: JSONObject) -> None:
    metadata = body["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")
    for attempt in range(_ATTEMPTS):
        try:
            await client.update(gvr, body, namespace)
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return  # deleted in between: there is nothing to store
            if error.status != _CONFLICT or attempt == _ATTEMPTS - 1:
                raise
        else:
            return
        try:
            body = await client.get(gvr, name, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return


async def _note_version(client: Client, name: str, version: str) -> None:
    for attempt in range(_ATTEMPTS):
        definition = await client.get(_CRD, name)
        if definition.get("status", {}).get("storedVersions") == [version]:
            return
        changed = {**definition, "status": {**definition.get("status", {}), "storedVersions": [version]}}
        try:
            await client.update(_CRD, changed, subresource="status")
        except StatusError as error:
            if error.status != _CONFLICT or attempt == _ATTEMPTS - 1:
                raise
        else:
            return
