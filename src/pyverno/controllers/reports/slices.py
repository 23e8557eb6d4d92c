"""Objects evaluated in threads, in slices of time: the event loop keeps running, and a slow policy delays few others.

Bodies that are not in memory are read from a list of their namespace, page by page.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from pyverno.cluster.client import Client
from pyverno.controllers.reports.evaluation import Evaluation, Evaluator, ScanContext
from pyverno.controllers.reports.objects import Bucket, Entry, ObjectStore, unpack_uid
from pyverno.engine.host import Host
from pyverno.kube.json import JSONObject
from pyverno.threads import in_pool

__all__ = ["CHUNK", "Evaluated", "Piece", "Slices"]

CHUNK: Final = 128
"""Objects that are handed to a thread at a time, and that a page of a list has."""

_SLICE_SECONDS: Final = 0.05

Work = tuple[bytes, Entry, bytes]
"""Packed uid, entry, and its blob as it was when the work began."""

Evaluated = tuple[Work, Evaluation, float]
"""The work, its results, and how many seconds they took."""


class Piece(NamedTuple):
    """Objects of one bucket that are evaluated with the same context."""

    bucket: Bucket
    context: ScanContext
    work: Sequence[Work]


Body = Callable[[Piece, Work], JSONObject | None]


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
        found = await in_pool(self._pool, self._evaluator.evaluate, body, context, host)
        return found, time.monotonic() - began

    async def evaluate(self, pieces: Sequence[Piece]) -> AsyncIterator[tuple[Piece, Sequence[Evaluated]]]:
        """Yield the results for objects whose bodies are in memory, a part of a piece at a time."""
        async for each in self._in_slices(pieces, self._find_stored):
            yield each

    async def evaluate_listed(self, piece: Piece) -> AsyncIterator[tuple[Piece, Sequence[Evaluated]]]:
        """Yield the results for objects whose bodies are not in memory; raises HostError, StatusError for a list."""
        by_uid = {unpack_uid(each[0]): each for each in piece.work}
        async for items in self._pages(piece.bucket):
            bodies = {item["metadata"]["uid"]: item for item in items}
            listed = [by_uid[uid] for uid in bodies if uid in by_uid]

            def body(_piece: Piece, one: Work, bodies: dict[str, JSONObject] = bodies) -> JSONObject | None:
                return bodies[unpack_uid(one[0])]

            if listed:
                async for each in self._in_slices([piece._replace(work=listed)], body):
                    yield each

    def _find_stored(self, piece: Piece, one: Work) -> JSONObject | None:
        return self._store.unpack(piece.bucket.key.gvr, one[2])

    async def _pages(self, bucket: Bucket) -> AsyncIterator[list[JSONObject]]:
        async for found in self._client.pages(bucket.key.gvr, bucket.key.namespace, page=CHUNK):
            kind = {"apiVersion": found.get("apiVersion"), "kind": bucket.gvk.kind}
            yield [{**kind, **item} for item in found.get("items") or ()]

    async def _in_slices(self, pieces: Sequence[Piece], body: Body) -> AsyncIterator[tuple[Piece, Sequence[Evaluated]]]:
        host, rest = self._host(), pieces
        while rest:
            done = await in_pool(self._pool, self._evaluate_some, rest, body, host)
            for each in done:
                yield each
            rest = _rest_of(rest, done)

    def _evaluate_some(
        self, pieces: Sequence[Piece], body: Body, host: Host
    ) -> list[tuple[Piece, Sequence[Evaluated]]]:
        """Evaluate as much of the work as one slice of time holds, in a thread."""
        done: list[tuple[Piece, Sequence[Evaluated]]] = []
        evaluate = self._evaluator.evaluate
        began = time.monotonic()
        end = began + _SLICE_SECONDS
        for piece in pieces:
            found: list[Evaluated] = []
            done.append((piece, found))
            for each in piece.work:
                evaluation = evaluate(body(piece, each) or {}, piece.context, host, began)
                now = time.monotonic()
                found.append((each, evaluation, now - began))
                began = now
                if now > end:
                    return done
        return done


def _rest_of(pieces: Sequence[Piece], done: Sequence[tuple[Piece, Sequence[Evaluated]]]) -> list[Piece]:
    """Return what is left of pieces of which all but the last one done are complete."""
    last, found = done[-1]
    left = [last._replace(work=last.work[len(found) :])] if len(found) < len(last.work) else []
    return [*left, *pieces[len(done) :]]
