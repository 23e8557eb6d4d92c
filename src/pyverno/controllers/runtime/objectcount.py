"""The number of objects of a resource, from a watch of their metadata; unknown while the watch is stale."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, newest
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

__all__ = ["ObjectCount"]


class ObjectCount:
    """Counts objects of some resources while `run` runs."""

    def __init__(self, client: Client, resources: Sequence[GVR], *, namespace: str = "", selector: str = "") -> None:
        """Take the resources to count, optionally in one namespace or with a label selector."""
        self._informers = tuple(
            Informer(client, gvr, namespace=namespace, selector=selector, shrink=_place, only_metadata=True)
            for gvr in resources
        )

    @property
    def value(self) -> int | None:
        """The number of objects; None while it is unknown."""
        if any(each.is_stale or not each.synced.is_set() for each in self._informers):
            return None
        return sum(map(len, self._informers))

    @property
    def revision(self) -> str:
        """A resource version that the cluster had a moment ago, "" while none is known."""
        return newest(each.revision for each in self._informers)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())


def _place(body: JSONObject) -> JSONObject:
    """Keep only the name and namespace of an object."""
    metadata = body.get("metadata") or {}
    return {"metadata": {key: metadata[key] for key in ("name", "namespace") if key in metadata}}
