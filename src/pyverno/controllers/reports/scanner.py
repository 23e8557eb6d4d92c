"""The background scan: follows the objects that policies match, and evaluates those whose results may have changed.

Objects that changed come first and one by one; a change of policies sweeps over all objects that it concerns. What
reads more than the object is evaluated again once in each interval, spread over it. Evaluation happens in threads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.cluster.notinghost import ConfigMapKey
from pyverno.controllers.reports.configmaps import ConfigMapWatches
from pyverno.controllers.reports.contexts import Contexts
from pyverno.controllers.reports.evaluation import Evaluation, Evaluator, Outcome, ScanContext
from pyverno.controllers.reports.feed import Feed
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.objects import Bucket, BucketKey, Entry, ObjectStore, pack_uid, unpack_uid
from pyverno.controllers.reports.plan import ScanPlan
from pyverno.controllers.reports.reportindex import Listed, NoteKey
from pyverno.controllers.reports.rescans import Rescans
from pyverno.controllers.reports.settings import ScanSettings
from pyverno.controllers.reports.slices import CHUNK, Evaluated, Piece, Slices
from pyverno.engine.host import Host
from pyverno.engine.request import EvaluationSettings
from pyverno.engine.result import RuleResult
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["ScanCallbacks", "Scanner"]

log = logging.getLogger("pyverno.reports")

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_MAX_PENDING: Final = 2000
_ERROR_SECONDS: Final = 15.0
_NOT_FOUND: Final = 404
_NOTHING: Final = Outcome(b"", frozenset(), reads_host=False, has_errors=False, is_empty=True)


@dataclass(frozen=True, slots=True)
class ScanCallbacks:
    """Functions that a scan calls: for hosts of rules, for each evaluation, and for objects with new results.

    `on_due` takes an object whose report is not as the scan found it, and whether the object itself has changed.
    `on_refusal` takes a resource that is not listed.
    """

    host: Callable[[], Host]
    on_due: Callable[[ObjectId, bool], None]
    on_refusal: Callable[[GVR, StatusError | None], None]
    on_evaluated: Callable[[Sequence[RuleResult], GVK, str, float], None]


class Scanner:
    """Scans while `run` runs; all methods belong to the event loop's thread."""

    def __init__(self, client: Client, settings: ScanSettings, callbacks: ScanCallbacks) -> None:
        """Take the client, the settings from flags, and the rest of the controller."""
        self.store = ObjectStore(settings.memory_bytes)
        self.seconds = 0.0
        """How long the last sweep took."""
        self._client = client
        self._settings = settings
        self._callbacks = callbacks
        self._namespaces = Informer(client, _NAMESPACES)
        self._namespaces.listen(self._take_namespace)
        self._contexts = Contexts(self._namespaces.get)
        self._slices = Slices(client, self.store, Evaluator(settings.shown), callbacks.host, settings.workers)
        self._feeds: dict[GVR, tuple[Feed, asyncio.Task[None]]] = {}
        self._kinds: dict[GVR, GVK] = {}
        self._listing: dict[GVR, set[bytes]] = {}
        self._reported: dict[NoteKey, bytes] = {}
        self._config_maps = ConfigMapWatches(client, self._note_config_map)
        self._fresh: dict[ObjectId, tuple[Entry, ScanContext, bytes, Evaluation]] = {}
        self._pending: dict[ObjectId, float] = {}
        self._room = asyncio.Event()
        self._dirty = asyncio.Event()
        self._is_sweeping = False
        self._has_plan = False
        self._group: asyncio.TaskGroup | None = None

    # -------------------------------------------------------------------------------------------------------- state

    @property
    def is_settled(self) -> bool:
        """Return whether every object is evaluated with the present policies, and every result handed on."""
        feeds = (feed for feed, _ in self._feeds.values())
        is_listed = all(feed.synced.is_set() or feed.refused for feed in feeds)
        return self._has_plan and is_listed and not (self._dirty.is_set() or self._is_sweeping or self._pending)

    @property
    def pending(self) -> tuple[ObjectId, ...]:
        """The objects that wait for their reports."""
        return tuple(self._pending)

    @property
    def plan(self) -> ScanPlan:
        """The present plan."""
        return self._contexts.plan

    @property
    def queue_age(self) -> float:
        """For how many seconds the oldest object waits for its report."""
        oldest = next(iter(self._pending.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest

    def find(self, id: ObjectId) -> Iterator[tuple[Bucket, bytes, Entry]]:
        """Yield an object in each version in which it is followed."""
        uid = pack_uid(id.uid)
        for gvr in self._kinds:
            if (gvr.group, gvr.resource) == (id.group, id.resource):
                bucket = self.store.bucket(BucketKey(gvr, id.namespace))
                entry = None if bucket is None else bucket.entries.get(uid)
                if bucket is not None and entry is not None:
                    yield bucket, uid, entry

    def is_followed(self, id: ObjectId) -> bool:
        """Return whether all objects of a resource are known."""
        return any(
            (gvr.group, gvr.resource) == (id.group, id.resource) and feed.synced.is_set() and not feed.is_stale
            for gvr, (feed, _) in self._feeds.items()
        )

    def is_report_of_scan(self, id: ObjectId, digest: bytes) -> bool:
        """Record the digest of an object's report; return whether it is that of the scan, or may be."""
        found = list(self.find(id))
        if not found:
            if digest and not self.is_followed(id):
                self._reported[id.namespace, pack_uid(id.uid)] = digest
            return False
        for _, _, entry in found:
            entry.reported = digest
        return len(found) == 1 and found[0][2].outcome is not None and found[0][2].outcome.digest == digest

    def check_listed(self, reports: GVR, listed: Listed) -> None:
        """Have the reports written again that a new list of all reports does not have any more."""
        is_cluster = reports.resource.startswith("cluster")
        for bucket in self.store.buckets():
            if (not bucket.key.namespace) == is_cluster:
                found = listed.get(bucket.key.namespace, ())
                for uid, entry in bucket.entries.items():
                    if entry.reported and uid not in found:
                        entry.reported = b""
                        entry.context = None
                        self._dirty.set()

    # ------------------------------------------------------------------------------------------------------ changes

    def follow(self, plan: ScanPlan) -> None:
        """Take a new plan: follow its kinds, and evaluate what it changes."""
        self._has_plan = True
        for info in plan.kinds:
            self._watch(info)
        if self._contexts.follow(plan) or len(plan.kinds) != len(self._feeds):
            self._dirty.set()

    def follow_settings(self, settings: EvaluationSettings) -> None:
        """Take new settings of evaluation."""
        if self._contexts.follow_settings(settings):
            self._dirty.set()

    def forget_results(self) -> None:
        """Evaluate everything again: what the cluster serves has changed."""
        for bucket in self.store.buckets():
            self._contexts.forget(bucket.key)
        self._dirty.set()

    def _watch(self, info: KindInfo) -> None:
        if info.gvr in self._feeds or self._group is None:
            return
        self._kinds[info.gvr] = info.gvk
        feed = Feed(self._client, info.gvr, self, on_refusal=self._note_refusal)
        self._feeds[info.gvr] = feed, self._group.create_task(feed.run())

    def _note_refusal(self, gvr: GVR, error: StatusError | None) -> None:
        self._callbacks.on_refusal(gvr, error)

    def _take_namespace(self, _notice: Notice, body: JSONObject) -> None:
        if self._contexts.follow_namespace(body["metadata"]["name"]):
            self._dirty.set()

    # -------------------------------------------------------------------------------------------------- sink of feeds

    def begin(self, gvr: GVR) -> None:
        """Note which objects a list brings."""
        self._listing[gvr] = set()

    def end(self, gvr: GVR) -> None:
        """Forget what the list did not bring."""
        listed = self._listing.pop(gvr)
        for bucket in self.store.buckets_of(gvr):
            for uid in [uid for uid in bucket.entries if uid not in listed]:
                self._forget(bucket.key, uid)
        self._dirty.set()

    def put(self, gvr: GVR, body: JSONObject) -> None:
        """Take an object; one that changed is evaluated soon."""
        metadata = body["metadata"]
        if not self._settings.takes(self._kinds[gvr], metadata.get("namespace") or "", metadata["name"]):
            return
        listing = self._listing.get(gvr)
        if listing is not None:
            listing.add(pack_uid(metadata["uid"]))
        changed = self.store.put(gvr, self._kinds[gvr], body)
        if changed is None:
            return
        uid, bucket, entry = changed
        if entry.outcome is None:
            entry.reported = self._reported.pop((bucket.key.namespace, uid), entry.reported)
        if listing is None:
            self._add(_id(bucket, uid), has_changed=True)

    def remove(self, gvr: GVR, body: JSONObject) -> None:
        """Handle the deletion of an object."""
        metadata = body["metadata"]
        self._forget(BucketKey(gvr, metadata.get("namespace") or ""), pack_uid(metadata["uid"]))

    def _forget(self, key: BucketKey, uid: bytes) -> None:
        gone = self.store.remove(key, uid)
        if self.store.bucket(key) is None:
            self._contexts.forget(key)
        if gone is not None and gone.reported:
            self._callbacks.on_due(ObjectId(key.gvr.group, key.gvr.resource, key.namespace, unpack_uid(uid)), True)

    # ---------------------------------------------------------------------------------------------------- evaluation

    async def run(self) -> None:
        """Scan until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._namespaces.run())
                await self._namespaces.synced.wait()
                group.create_task(self._tour())
                await self._sweep_when_dirty()
        finally:
            self._group = None
            self._slices.close()

    async def evaluate(self, id: ObjectId) -> list[tuple[Entry, Evaluation]]:
        """Return the results for an object in each version in which it is followed; raises HostError, StatusError."""
        found: list[tuple[Entry, Evaluation]] = []
        for bucket, _, entry in list(self.find(id)):
            context = self._contexts.find(bucket.key, bucket.gvk)
            fresh = self._fresh.pop(id, None)
            if fresh is not None and fresh[0] is entry and fresh[1] is context and fresh[2] is entry.blob:
                found.append((entry, fresh[3]))
                continue
            blob, began = entry.blob, self._config_maps.changes
            body = await self._body(bucket, entry)
            if body is None:
                continue
            evaluation, seconds = await self._slices.evaluate_one(body, context)
            self._callbacks.on_evaluated(evaluation.results, bucket.gvk, bucket.key.namespace, seconds)
            if entry.blob is blob:
                self._keep(context, entry, evaluation, began)
            found.append((entry, evaluation))
        return found

    def done(self, id: ObjectId) -> None:
        """Take notice that the report of an object is as it should be, or is tried again later."""
        self._pending.pop(id, None)
        if len(self._pending) < _MAX_PENDING:
            self._room.set()

    async def _body(self, bucket: Bucket, entry: Entry) -> JSONObject | None:
        """Return the body of an object, from memory or else the API server; None for a deleted object."""
        body = self.store.body(bucket.key.gvr, entry)
        if body is not None:
            return body
        try:
            return await self._client.get(bucket.key.gvr, entry.name, bucket.key.namespace)
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def _keep(self, context: ScanContext, entry: Entry, evaluation: Evaluation, began: int) -> None:
        """Keep what came of an evaluation; `began` is how many changes of ConfigMaps had been seen before it."""
        entry.context, entry.outcome = context, evaluation.outcome
        for key in evaluation.outcome.config_maps:
            if self._config_maps.changed_since(key, began):
                entry.context = None
                self._dirty.set()
            if self._group is not None:
                self._config_maps.follow(key, self._group)

    def _add(self, id: ObjectId, *, has_changed: bool = False) -> None:
        self._pending.setdefault(id, time.monotonic())
        self._callbacks.on_due(id, has_changed)

    # -------------------------------------------------------------------------------------------------------- sweeps

    async def _sweep_when_dirty(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            self._is_sweeping, began = True, time.monotonic()
            try:
                chunks = self._chunks()
                async with asyncio.TaskGroup() as group:
                    for _ in range(max(self._settings.workers, 1)):
                        group.create_task(self._sweep(chunks))
                self._leave_unmatched()
            except Exception:
                log.exception("a sweep of the scan ran into a bug")
                asyncio.get_running_loop().call_later(_ERROR_SECONDS, self._dirty.set)
            finally:
                self._is_sweeping = False
            self.seconds = time.monotonic() - began

    def _chunks(self) -> Iterator[list[Piece]]:
        """Yield what has to be evaluated: up to `CHUNK` objects with bodies, or those of one bucket without."""
        chunk: list[Piece] = []
        room = CHUNK
        for bucket in list(self.store.buckets()):
            context = self._contexts.find(bucket.key, bucket.gvk)
            stale = [(uid, entry) for uid, entry in bucket.entries.items() if entry.context is not context]
            if not context.has_policies:
                self._clear(bucket, context, stale)
                continue
            work = [(uid, each, each.blob) for uid, each in stale if each.has_body]
            while work:
                chunk.append(Piece(bucket, context, work[:room]))
                room, work = room - len(work), work[room:]
                if room <= 0:
                    yield chunk
                    chunk, room = [], CHUNK
            bare = [(uid, each, each.blob) for uid, each in stale if not each.has_body]
            if bare:
                yield [Piece(bucket, context, bare)]
        if chunk:
            yield chunk

    async def _sweep(self, chunks: Iterator[list[Piece]]) -> None:
        for pieces in chunks:
            await self._evaluate_all(pieces)
            await self._wait_for_room()

    async def _wait_for_room(self) -> None:
        while len(self._pending) >= _MAX_PENDING:
            self._room.clear()
            await self._room.wait()

    def _clear(self, bucket: Bucket, context: ScanContext, stale: list[tuple[bytes, Entry]]) -> None:
        """Note that no policy matches these objects any more."""
        for uid, entry in stale:
            entry.context, entry.outcome = context, _NOTHING
            if entry.reported:
                self._add(_id(bucket, uid))

    async def _evaluate_all(self, pieces: Sequence[Piece]) -> None:
        """Evaluate objects together; after a bug each alone, so that only the object with the bug is left out."""
        try:
            await self._evaluate(pieces)
            return
        except Exception:
            log.exception("objects of a scan ran into a bug")
        for piece in pieces:
            for work in piece.work:
                try:
                    await self._evaluate([piece._replace(work=[work])])
                except Exception:
                    fields = {"resource": piece.bucket.key.gvr.resource, "uid": unpack_uid(work[0])}
                    log.exception("an object of a scan ran into a bug", extra={"fields": fields})
                    asyncio.get_running_loop().call_later(_ERROR_SECONDS, self._dirty.set)

    async def _evaluate(self, pieces: Sequence[Piece]) -> None:
        began = self._config_maps.changes
        is_stored = pieces[0].work[0][1].has_body
        found = self._slices.evaluate(pieces) if is_stored else self._slices.evaluate_listed(pieces[0])
        try:
            async for piece, evaluated in found:
                self._take(piece, evaluated, began)
        except (HostError, StatusError):  # of bodies that had to be listed
            asyncio.get_running_loop().call_later(_ERROR_SECONDS, self._dirty.set)

    def _take(self, piece: Piece, evaluated: Sequence[Evaluated], began: int) -> None:
        bucket, context = piece.bucket, piece.context
        for (uid, entry, blob), evaluation, seconds in evaluated:
            if entry.blob is not blob:
                continue  # it changed meanwhile, and is evaluated again
            self._keep(context, entry, evaluation, began)
            self._callbacks.on_evaluated(evaluation.results, bucket.gvk, bucket.key.namespace, seconds)
            if evaluation.outcome.digest != entry.reported:
                id = _id(bucket, uid)
                self._fresh[id] = entry, context, blob, evaluation
                self._add(id)

    def _leave_unmatched(self) -> None:
        """Stop following resources that no policy matches any more, once their reports are written."""
        wanted = {info.gvr for info in self.plan.kinds}
        for gvr in [gvr for gvr in self._feeds if gvr not in wanted]:
            entries = (entry for bucket in self.store.buckets_of(gvr) for entry in bucket.entries.values())
            if all(entry.outcome is _NOTHING and not entry.reported for entry in entries):
                feed, task = self._feeds.pop(gvr)
                task.cancel()
                self._callbacks.on_refusal(gvr, None)
                self.store.drop(gvr, lambda bucket, _uid, _entry: self._contexts.forget(bucket.key))
                del self._kinds[gvr], feed

    # ---------------------------------------------------------------------------------------------- what else is read

    async def _tour(self) -> None:
        """Evaluate objects again whose rules read the host: errors soon, others once in an interval, spread over it."""
        rescans = Rescans.of_interval(self._settings.interval_seconds)
        turn = 0
        errors_at = time.monotonic() + _ERROR_SECONDS
        while True:
            await asyncio.sleep(rescans.pause)
            turn = (turn + 1) % rescans.turns
            with_errors = time.monotonic() >= errors_at
            if with_errors:
                errors_at = time.monotonic() + _ERROR_SECONDS
            for bucket in list(self.store.buckets()):
                for uid, entry in bucket.entries.items():
                    outcome = entry.outcome
                    if outcome is None or not self._may_vary(outcome):
                        continue
                    if (with_errors and outcome.has_errors) or rescans.turn_of(uid) == turn:
                        entry.context = None
                        self._dirty.set()

    def _may_vary(self, outcome: Outcome) -> bool:
        """Return whether results may change without anything that is followed."""
        if outcome.reads_host or (outcome.has_errors and outcome.config_maps):
            return True
        return any(not self._config_maps.is_followed(key) for key in outcome.config_maps)

    def _note_config_map(self, key: ConfigMapKey) -> None:
        for bucket in self.store.buckets():
            for entry in bucket.entries.values():
                if entry.outcome is not None and key in entry.outcome.config_maps:
                    entry.context = None
                    self._dirty.set()


def _id(bucket: Bucket, uid: bytes) -> ObjectId:
    gvr = bucket.key.gvr
    return ObjectId(gvr.group, gvr.resource, bucket.key.namespace, unpack_uid(uid))
