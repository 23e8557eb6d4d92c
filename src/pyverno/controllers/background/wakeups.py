"""Wakes requests when what they wait for changes: a watch of metadata for each resource that any request waits for.

A watch covers the whole cluster, so that requests of many namespaces share it, and ends a while after the last request
that needs it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import STALE_SECONDS, Informer, Notice
from pyverno.cluster.informerset import InformerSet
from pyverno.controllers.background.work import Awaited
from pyverno.controllers.runtime.reconcile import ObjectKey
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

__all__ = ["Wakeups"]

_IDLE_SECONDS: Final = 300.0
_SWEEP_SECONDS: Final = 60.0
_RECENT: Final = 10_000


class Wakeups:
    """Requests and what they wait for; all methods belong to the event loop's thread."""

    def __init__(self, client: Client, wake: Callable[[ObjectKey], None], *, bound: float = STALE_SECONDS) -> None:
        """Take the client, and what has a request worked on again."""
        self._client = client
        self._wake = wake
        self._bound = bound
        self._informers: InformerSet[GVR] = InformerSet()
        self._waiting: dict[ObjectKey, tuple[Awaited, ...]] = {}
        self._keys: dict[GVR, set[ObjectKey]] = {}
        self._unused: dict[GVR, float] = {}
        self._recent: deque[tuple[float, GVR, str, str]] = deque(maxlen=_RECENT)

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, key: ObjectKey, on: Iterable[Awaited], *, since: float) -> None:
        """Wake a request at the next change of these objects, or at one after `since` (seconds of `time.monotonic`)."""
        self.forget(key)
        awaited = tuple(on)
        if not awaited:
            return
        self._waiting[key] = awaited
        for each in awaited:
            self._keys.setdefault(each.resource, set()).add(key)
            self._unused.pop(each.resource, None)
            if each.resource not in self._informers:
                self._follow(each.resource)
        if any(at >= since and _is_awaited(awaited, gvr, space, name) for at, gvr, space, name in self._recent):
            self._wake(key)

    def forget(self, key: ObjectKey) -> None:
        """Note that a request waits no longer."""
        for each in self._waiting.pop(key, ()):
            keys = self._keys.get(each.resource, set())
            keys.discard(key)
            if not keys:
                self._unused.setdefault(each.resource, time.monotonic())

    async def run(self) -> None:
        """Follow what requests wait for until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            group.create_task(self._sweep())

    def _follow(self, gvr: GVR) -> None:
        informer = Informer(self._client, gvr, bound=self._bound, shrink=_place_of, only_metadata=True)
        informer.listen(lambda _notice, body: self._take(gvr, _notice, body))
        self._informers.add(gvr, informer)

    def _take(self, gvr: GVR, _notice: Notice, body: JSONObject) -> None:
        metadata = body["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata["name"]
        self._recent.append((time.monotonic(), gvr, namespace, name))
        for key in tuple(self._keys.get(gvr, ())):
            if _is_awaited(self._waiting.get(key, ()), gvr, namespace, name):
                self._wake(key)

    async def _sweep(self) -> None:
        """Stop watches that nothing has needed for a while."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = time.monotonic()
            for gvr in [gvr for gvr, since in self._unused.items() if now - since >= _IDLE_SECONDS]:
                del self._unused[gvr]
                self._keys.pop(gvr, None)
                await self._informers.remove(gvr)


def _is_awaited(awaited: Iterable[Awaited], gvr: GVR, namespace: str, name: str) -> bool:
    return any(
        each.resource == gvr and each.namespace in ("", namespace) and each.name in ("", name) for each in awaited
    )


def _place_of(body: JSONObject) -> JSONObject:
    """Keep of an object its place and its version."""
    metadata = body.get("metadata") or {}
    kept = ("name", "namespace", "resourceVersion")
    return {"metadata": {key: metadata[key] for key in kept if key in metadata}}
