"""Objects evaluated in threads, in slices of time: the event loop goes on, and a slow policy holds up few others.

Bodies that are not in memory are read from a list of their namespace, page by page.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyverno.cluster.client import Client, resource_path
from pyverno.controllers.reports.evaluation import Evaluation, Evaluator, ScanContext
from pyverno.controllers.reports.objects import Bucket, Entry, ObjectStore, unpack_uid
from pyverno.engine.host import Host
from pyverno.kube.json import JSONObject

__all__ = ["CHUNK", "Slices", "Work"]

CHUNK: Final = 128
"""Objects that are handed to a thread at a time, and that a page of a list has."""

_SLICE_SECONDS: Final = 0.05

Work = tuple[bytes, Entry, bytes]
"""Packed uid, entry, and its blob as it was when the work began."""

Evaluated = tuple[Work, Evaluation, float]
"""The work, its results, and how many seconds they took."""

Body = Callable[[Work], JSONObject | None]


class Slices:
    """Evaluates in `workers` threads until `close`."""

    def __init__(
        self, client: Client, store: ObjectStore, evaluator: Evaluator, host: Callable[[], Host], workers: int
    ) -> None:
        """Take what has the bodies, what evaluates, and hosts for rules."""
        self._client = client
        self._store = store
        self._evaluator = evaluator
        self._host = host
        self._pool = ThreadPoolExecutor(max(workers, 1), thread_name_prefix="scan")

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def evaluate_one(self, body: JSONObject, context: ScanContext) -> tuple[Evaluation, float]:
        """Evaluate one object; return the results and how many seconds they took."""
        began, host = time.monotonic(), self._host()
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._pool, self._evaluator.evaluate, body, context, host)
        return found, time.monotonic() - began

    async def evaluate(self, bucket: Bucket, context: ScanContext, work: Sequence[Work]) -> AsyncIterator[Evaluated]:
        """Yield the results for objects of a bucket, either all with bodies in memory or none.

        Raises HostError and StatusError when bodies cannot be read.
        """
        if work[0][1].has_body:
            gvr = bucket.key.gvr
            async for each in self._in_slices(context, work, lambda one: self._store.unpack(gvr, one[2])):
                yield each
            return
        by_uid = {unpack_uid(each[0]): each for each in work}
        async for items in self._pages(bucket):
            bodies = {item["metadata"]["uid"]: item for item in items}
            listed = [by_uid[uid] for uid in bodies if uid in by_uid]

            def body(one: Work, bodies: dict[str, JSONObject] = bodies) -> JSONObject | None:
                return bodies[unpack_uid(one[0])]

            async for each in self._in_slices(context, listed, body):
                yield each

    async def _pages(self, bucket: Bucket) -> AsyncIterator[list[JSONObject]]:
        query = {"limit": str(CHUNK)}
        path = resource_path(bucket.key.gvr, bucket.key.namespace)
        while True:
            found = await self._client.request("GET", path, query=query)
            kind = {"apiVersion": found.get("apiVersion"), "kind": bucket.gvk.kind}
            yield [{**kind, **item} for item in found.get("items") or ()]
            following = (found.get("metadata") or {}).get("continue")
            if not following:
                return
            query = {"limit": str(CHUNK), "continue": following}

    async def _in_slices(self, context: ScanContext, work: Sequence[Work], body: Body) -> AsyncIterator[Evaluated]:
        loop, host, rest = asyncio.get_running_loop(), self._host(), work
        while rest:
            done = await loop.run_in_executor(self._pool, self._evaluate_some, context, rest, body, host)
            rest = rest[len(done) :]
            for each in done:
                yield each

    def _evaluate_some(self, context: ScanContext, work: Sequence[Work], body: Body, host: Host) -> list[Evaluated]:
        """Evaluate as much of the work as one slice of time holds, in a thread."""
        found: list[Evaluated] = []
        began = time.monotonic()
        end = began + _SLICE_SECONDS
        for each in work:
            evaluation = self._evaluator.evaluate(body(each) or {}, context, host)
            now = time.monotonic()
            found.append((each, evaluation, now - began))
            began = now
            if now > end:
                break
        return found
