"""Labels of namespaces, for targets that are chosen by them: read when a notice goes out, and kept for a minute."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError

__all__ = ["NamespaceLabels"]

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_SECONDS: Final = 60.0
_LIST_SECONDS: Final = 5.0
_MOST: Final = 10_000
_NOT_FOUND: Final = 404

_Listed = Sequence[tuple[str, Mapping[str, str]]]
"""The names and labels of all namespaces of a cluster."""


class NamespaceLabels:
    """Reads labels from the clusters; those of a deleted namespace stay what they were."""

    def __init__(self, clients: Mapping[str, Client], now: Callable[[], float] = time.monotonic) -> None:
        """Take the client of each cluster by its name."""
        self._clients = clients
        self._now = now
        self._lists: dict[str, tuple[float, _Listed]] = {}
        self._asked: dict[str, asyncio.Task[_Listed]] = {}
        self._known: OrderedDict[tuple[str, str], tuple[float, Mapping[str, str]]] = OrderedDict()

    async def matching(self, labels: Mapping[str, str]) -> list[str]:
        """Return the names of the namespaces of all clusters with these labels; raises HostError."""
        found: list[str] = []
        for cluster, client in self._clients.items():
            listed = await self._listed(cluster, client)
            found += [name for name, own in listed if labels.items() <= own.items()]
        return found

    async def _listed(self, cluster: str, client: Client) -> _Listed:
        """Return the names and labels of all namespaces, read once for the views of a page and all who ask."""
        known = self._lists.get(cluster)
        if known is not None and self._now() - known[0] < _LIST_SECONDS:
            return known[1]
        running = self._asked.get(cluster)
        if running is None:
            # those who come while a cluster does not answer share its error, and do not wait for it one by one
            running = self._asked[cluster] = asyncio.ensure_future(self._list(cluster, client))
            running.add_done_callback(lambda task: self._forget(cluster, task))
        return await asyncio.shield(running)

    def _forget(self, cluster: str, task: asyncio.Task[_Listed]) -> None:
        self._asked.pop(cluster, None)
        if not task.cancelled():
            task.exception()  # the requests that wait for it raise it

    async def _list(self, cluster: str, client: Client) -> _Listed:
        try:
            items = (await client.list(_NAMESPACES))["items"]
        except StatusError as error:
            raise HostError(f"namespaces of `{cluster}` cannot be listed: {error.message}") from error
        bodies = [body.get("metadata") or {} for body in items]
        listed = [(str(each.get("name", "")), each.get("labels") or {}) for each in bodies]
        self._lists[cluster] = (self._now(), listed)
        return listed

    async def labels(self, cluster: str, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; raises HostError when they cannot be read."""
        key = (cluster, namespace)
        known = self._known.get(key)
        if known is not None and self._now() - known[0] < _SECONDS:
            return known[1]
        client = self._clients.get(cluster)
        if client is None:
            raise HostError(f"labels of namespaces of `{cluster}` cannot be read: there is no such cluster")
        try:
            body = await client.get(_NAMESPACES, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise HostError(f"labels of namespace `{namespace}` cannot be read: {error.message}") from error
            found = known[1] if known is not None else {}
        else:
            written = (body.get("metadata") or {}).get("labels") or {}
            found = {str(name): str(value) for name, value in written.items()}
        self._known[key] = (self._now(), found)
        self._known.move_to_end(key)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return found
