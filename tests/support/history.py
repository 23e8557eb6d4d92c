"""The history of objects, read from a watch: every creation, change and deletion, in order.

A checker compares it with the expected writes: none lost, none repeated.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pyverno.cluster.client import Client
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject

__all__ = ["History", "following"]


class History:
    """The changes of a resource's objects with some labels, since the start of the watch."""

    def __init__(self, listed: Callable[[], Awaitable[JSONObject]]) -> None:
        """Take a function that lists the objects."""
        self._listed = listed
        self._versions: dict[str, str] = {}
        self.events: list[tuple[str, str, str]] = []
        """Type of the event (ADDED, MODIFIED, DELETED), with namespace and name of the object."""

    def writes(self) -> Counter[tuple[str, str]]:
        """Return the number of writes for each object."""
        return Counter((namespace, name) for kind, namespace, name in self.events if kind != "DELETED")

    def problems(self, expected: set[tuple[str, str]]) -> list[str]:
        """Return lost and repeated writes."""
        writes = self.writes()
        lost = [f"lost: {namespace}/{name}" for namespace, name in sorted(expected - set(writes))]
        strange = [f"not expected: {namespace}/{name}" for namespace, name in sorted(set(writes) - expected)]
        twice = [f"written {times} times: {place[0]}/{place[1]}" for place, times in writes.items() if times > 1]
        return [*lost, *strange, *twice]

    def take(self, event: JSONObject) -> None:
        """Record one event of the watch."""
        metadata = (event.get("object") or {}).get("metadata") or {}
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            self.events.append((event["type"], metadata.get("namespace") or "", metadata["name"]))
            self._versions[metadata["uid"]] = metadata["resourceVersion"]
            if event["type"] == "DELETED":
                del self._versions[metadata["uid"]]

    async def begin(self) -> str:
        """Take the objects that are there, and return the version from which to watch."""
        listed = await self._listed()
        self._versions = _versions(listed)
        version: str = listed["metadata"]["resourceVersion"]
        return version

    async def catch_up(self) -> None:
        """Wait until the watch has delivered every write that was made before."""
        async with asyncio.timeout(60):
            while self._versions != _versions(await self._listed()):
                await asyncio.sleep(0.02)


def _versions(listed: JSONObject) -> dict[str, str]:
    """Return the versions of listed objects by uid."""
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in listed["items"]}


@asynccontextmanager
async def following(client: Client, gvr: GVR, selector: str) -> AsyncIterator[History]:
    """Follow objects by their labels; a broken watch fails the test."""
    history = History(lambda: client.list(gvr, query={"labelSelector": selector}))
    query = {
        "watch": "1",
        "labelSelector": selector,
        "resourceVersion": await history.begin(),
        "timeoutSeconds": "3600",
    }

    async def follow() -> None:
        async for event in client.stream(resource_path(gvr), query=query):
            history.take(event)
        raise RuntimeError("the watch of the history ended")

    running = asyncio.create_task(follow())
    try:
        yield history
        if running.done():
            running.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
