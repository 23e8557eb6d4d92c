"""Data of a live cluster, read before a review: kinds, the data of the global context, complete objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.discovery import discover
from pyverno.cluster.informer import Notice
from pyverno.controllers.state.hosts import HostFactory
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import WATCHED_EXCEPTIONS

__all__ = ["by_name", "discover_kinds", "is_older", "load_entries", "with_type"]

_ENTRY_SECONDS: Final = 15.0


async def discover_kinds(client: Client) -> KindTable:
    """Return the kinds that a cluster serves; raises HostError when it does not answer."""
    try:
        return await discover(client)
    except StatusError as error:
        raise HostError(f"the kinds of the cluster cannot be read: {error.message}") from None


async def load_entries(client: Client, hosts: HostFactory) -> None:
    """Load the global context, and wait until each entry has data or a reason for their absence."""
    gvr = hosts.entry_resource()
    if gvr is None:
        return
    listed = await client.list(gvr)
    names = []
    for body in listed["items"]:
        hosts.entries.take(Notice.ADDED, body)
        names.append(body["metadata"]["name"])
    end = time.monotonic() + _ENTRY_SECONDS
    while names and time.monotonic() < end:
        names = [name for name in names if not _has_answer(hosts, name)]
        await asyncio.sleep(0.05)


def _has_answer(hosts: HostFactory, name: str) -> bool:
    try:
        hosts.entries.get(name)
    except HostError:
        return False
    return True


def is_older(gvr: GVR, kinds: KindTable) -> bool:
    """Return whether a newer version of the same resource is served, which is read instead."""
    versions = [each for each in WATCHED_EXCEPTIONS if (each.group, each.resource) == (gvr.group, gvr.resource)]
    first = next((each for each in versions if kinds.by_resource(each) is not None), None)
    return first != gvr


def with_type(item: JSONObject, info: KindInfo) -> JSONObject:
    """Return the item of a list with the kind and version that lists leave out."""
    return {"apiVersion": info.api_version, "kind": info.kind, **item}


def by_name(items: Sequence[JSONObject]) -> Mapping[str, JSONObject]:
    """Return objects by their names."""
    return {Resource(each).name: each for each in items}
