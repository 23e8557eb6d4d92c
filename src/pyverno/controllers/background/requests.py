"""Works on UpdateRequests: each is handled until it is completed, and deleted then.

Kyverno's states stay: Pending and Failed requests are worked on, Completed ones are deleted, Skip is left
alone. A failed request is retried with growing delays, without an end; `status.message` and a condition hold
the reason. A request that waits for something is woken when that changes. The work is divided into lanes, and a lane is
worked on by one replica at a time: shards for the types that replicas share, the leader's for all others.

Requests that were never tried come first, and only they count for the threshold: whatever number of others fails or
waits, new work is accepted and done. What cannot be done is marked with the label `HELD`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.controllers.background.requeststatus import Progress, progress_of, status_of
from pyverno.controllers.background.settings import BackgroundSettings
from pyverno.controllers.background.shards import shard_of
from pyverno.controllers.background.wakeups import Wakeups
from pyverno.controllers.background.work import Awaited, Done, Handler, Waiting, read_request
from pyverno.controllers.keptobjects import read_kept
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings, ObjectKey, Watch
from pyverno.controllers.runtime.statuspatch import status_patch
from pyverno.controllers.writeguard import QuarantinedError
from pyverno.errors import HostError, PyvernoError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.policy.updaterequest import HELD, KEPT, MAX_HELD_SHARE, UPDATE_REQUESTS, RequestType, UpdateRequest
from pyverno.value import replace

__all__ = ["LEADER", "UpdateRequests", "lane_of"]

log = logging.getLogger("pyverno.background")

LEADER: Final = -1
"""The lane of the leader; the others are the numbers of shards."""

_NAMESPACES: Final = GVR("", "v1", "namespaces")
_NOT_FOUND: Final = 404
_KEPT_SECONDS: Final = 30.0
"""How long a request waits for its deleted object."""

_KEPT_PAUSE: Final = 0.5
_HELD_SECONDS: Final = 60.0
"""A request that waits for so long is held, as one that failed is."""
_QUARANTINE_SHARE: Final = 1.1
"""How long after its quarantine a request is tried again, so that it finds the guard quiet."""


class UpdateRequests:
    """The requests of a namespace and a controller for each lane; `informer` and `wakeups` run in every replica."""

    def __init__(
        self,
        client: Client,
        settings: BackgroundSettings,
        handlers: Mapping[RequestType, Handler],
        *,
        sharded: Iterable[RequestType] = (),
        versions: Callable[[], Mapping[str, object]] = dict,
        on_failure: Callable[[str], None] = lambda _type: None,
        metrics: LoopMetrics | None = None,
    ) -> None:
        """Take the handlers, and the types of requests that replicas share (`sharded`).

        `versions` returns what failing requests depend on, by the keys of policies; "" stands for all. `on_failure`
        receives the type of each request that failed.
        """
        self._client = client
        self._handlers = handlers
        self._sharded = frozenset(each.value for each in sharded)
        self._versions = versions
        self._on_failure = on_failure
        self._count = max(settings.shards, 1)
        self.informer = Informer(client, UPDATE_REQUESTS, namespace=settings.namespace, on_restore=self._restore)
        self.informer.listen(self._note)
        self.wakeups = Wakeups(client, self.wake, bound=settings.hosts.stale_seconds)
        self._written: dict[ObjectKey, Progress] = {}
        self._finished: set[str] = set()
        self._held: dict[ObjectKey, str] = {}
        self._held_versions: Mapping[str, object] = {}
        self._created: dict[ObjectKey, float] = {}
        self._expected: set[ObjectKey] = set()
        self._intake = _Intake()
        workers = max(settings.workers, 1)
        self.leading = self._lane(LEADER, workers, settings, metrics)
        self.shards = tuple(
            self._lane(number, -(-workers // self._count), settings, metrics) for number in range(self._count)
        )

    def __len__(self) -> int:
        return len(self.informer)

    @property
    def is_idle(self) -> bool:
        """Return whether the lanes that run here have nothing left to do, and the leader's is one of them."""
        return self.leading.is_idle and all(each.is_idle for each in self.shards if each.is_running)

    @property
    def oldest_seconds(self) -> float:
        """The age of the oldest request; 0 without any."""
        return max(time.time() - min(self._created.values(), default=time.time()), 0.0)

    def wake(self, key: ObjectKey) -> None:
        """Have a request worked on now, by the lane it belongs to, if that one runs here."""
        body = self.informer.get(key.name, key.namespace)
        if body is not None:
            self._controller(body).add(key, after=0)

    def wake_changed(self) -> None:
        """Wake the requests that failed or wait, and whose policy changed since."""
        before, self._held_versions = self._held_versions, dict(self._versions())
        now = self._held_versions
        is_all = before.get("") != now.get("")
        for key, policy in tuple(self._held.items()):
            if is_all or before.get(policy) != now.get(policy):
                self.wake(key)

    async def has_room(self, threshold: int) -> None:
        """Wait until the number of requests that are not held is below the threshold."""
        await self._intake.wait(
            lambda: len(self._expected) < threshold and len(self.informer) < threshold * MAX_HELD_SHARE
        )

    # ---------------------------------------------------------------------------------------------------------- lanes

    def _lane(
        self, lane: int, workers: int, settings: BackgroundSettings, metrics: LoopMetrics | None
    ) -> Controller[ObjectKey]:
        def keys(notice: Notice, body: JSONObject) -> Iterator[ObjectKey]:
            return self._changed_keys(notice, body) if self._lane_of(body) == lane else iter(())

        def all_keys() -> Iterator[ObjectKey]:
            return (_key(body) for body in self.informer.all() if self._lane_of(body) == lane)

        return Controller(
            "update-request",
            self._reconcile,
            keys=all_keys,
            watches=(Watch(lambda: self.informer, keys, is_shared=True),),
            settings=LoopSettings(workers=workers, backoff=settings.backoff, resync_seconds=settings.resync_seconds),
            metrics=metrics,
        )

    def _lane_of(self, body: JSONObject) -> int:
        return lane_of(body, self._count) if _type(body) in self._sharded else LEADER

    def _controller(self, body: JSONObject) -> Controller[ObjectKey]:
        lane = self._lane_of(body)
        return self.leading if lane == LEADER else self.shards[lane]

    def _changed_keys(self, notice: Notice, body: JSONObject) -> Iterator[ObjectKey]:
        """Yield the key of a request that changed; our own status comes back by the watch, and is no change."""
        key = _key(body)
        if notice is Notice.DELETED or self._written.get(key) != progress_of(body):
            yield key  # of a deleted one, because a retry that is due later has nothing left to do

    def _note(self, notice: Notice, body: JSONObject) -> None:
        """Count the requests that exist, in every replica; new ones come before those that failed."""
        key = _key(body)
        if notice is Notice.DELETED:
            self._created.pop(key, None)
            self._expected.discard(key)
            self._finished.discard(body["metadata"].get("uid", ""))
            self._release(key)
            self._intake.note()
            return
        if key not in self._created:
            self._created[key] = _seconds(body["metadata"].get("creationTimestamp"))
            if not progress_of(body).retries:
                self._controller(body).add(key, after=0, is_urgent=True)
        if _is_held(body):
            self._expected.discard(key)
            self._intake.note()
        else:
            self._expected.add(key)

    def _restore(self) -> None:
        """Work on all requests again: what was done for them may be gone, and those that were deleted may be back."""
        self._finished.clear()
        self._written.clear()
        for lane in (self.leading, *self.shards):
            lane.add_all()

    # ----------------------------------------------------------------------------------------------------------- work

    async def _reconcile(self, key: ObjectKey) -> Again | None:
        body = self.informer.get(key.name, key.namespace)
        if body is None or body["metadata"].get("uid") in self._finished or body["metadata"].get("deletionTimestamp"):
            self._release(key)
            return None
        state = (body.get("status") or {}).get("state") or "Pending"
        if state == "Skip":
            return None
        if state == "Completed":
            await self._delete(key, body)
            return None
        return await self._work(key, body)

    async def _work(self, key: ObjectKey, body: JSONObject) -> Again | None:
        began = time.monotonic()
        try:
            outcome = await self._handle(body)
        except PyvernoError as error:
            return await self._fail(key, body, error, began)
        except Exception:
            log.exception("an UpdateRequest ran into a bug", extra={"fields": {"request": str(key)}})
            return await self._fail(key, body, HostError("an internal error occurred; see the log"), began)
        if isinstance(outcome, Done):
            if outcome.is_refused:
                self._note_refusal(key, body, outcome.message)
            await self._delete(key, body)
            return None
        self._hold(key, body, outcome.on, began)
        await self._write_status(key, body, "Pending", "Waiting", outcome.message)
        if outcome.seconds >= _HELD_SECONDS:
            await self._mark_held(key, body)
        return Again(outcome.seconds)

    async def _handle(self, body: JSONObject) -> Done | Waiting:
        request = read_request(body)
        if KEPT in (body["metadata"].get("annotations") or {}):
            found = await self._with_kept(request, body)
            if isinstance(found, Waiting):
                return found
            request = found
        handler = self._handlers.get(request.spec.request_type)
        if handler is None:
            raise HostError(f"nothing works on requests of type `{request.spec.request_type.value}`")
        return await handler.handle(request)

    async def _with_kept(self, request: UpdateRequest, body: JSONObject) -> UpdateRequest | Waiting:
        """Return a request with its deleted object, which is stored a moment after it."""
        context = request.spec.context
        asked = context.request if isinstance(context.request, dict) else {}
        kept = await read_kept(self._client, body, asked.get("oldObject"))
        age = time.time() - _seconds(body["metadata"].get("creationTimestamp"))
        if kept is None and age < _KEPT_SECONDS:
            return Waiting("the deleted object is not stored yet", seconds=_KEPT_PAUSE)
        return replace(request, spec=replace(request.spec, context=replace(context, kept=kept)))

    async def _fail(self, key: ObjectKey, body: JSONObject, error: PyvernoError, began: float) -> Again:
        """Record the reason, and retry the request: with growing delays, or when a quarantine ends."""
        self._on_failure(_type(body))
        self._hold(key, body, _read_awaited(error), began)
        is_quarantined = isinstance(error, QuarantinedError)
        await self._write_status(key, body, "Failed", "Quarantined" if is_quarantined else "Failed", error.message)
        await self._mark_held(key, body)
        if isinstance(error, QuarantinedError):
            return Again(error.seconds * _QUARANTINE_SHARE)
        if isinstance(error, HostError | StatusError):
            raise error
        raise HostError(str(error)) from error

    def _note_refusal(self, key: ObjectKey, body: JSONObject, reason: str) -> None:
        """Log and count a request that the API server does not confirm."""
        self._on_failure(_type(body))
        fields = {"request": str(key), "policy": str((body.get("spec") or {}).get("policy") or ""), "reason": reason}
        log.warning(
            "an UpdateRequest was not done, because the API server does not confirm it", extra={"fields": fields}
        )

    async def _delete(self, key: ObjectKey, body: JSONObject) -> None:
        uid = body["metadata"].get("uid", "")
        self._release(key)
        try:
            await self._client.discard(
                UPDATE_REQUESTS, key.name, key.namespace, options={"preconditions": {"uid": uid}}
            )
        except StatusError as error:
            if error.status != _NOT_FOUND:  # else another replica has deleted it
                raise
        if self.informer.has(key.name, key.namespace):
            self._finished.add(uid)  # the watch has not delivered its deletion yet

    async def _mark_held(self, key: ObjectKey, body: JSONObject) -> None:
        """Note on a request that it waits for something else than its turn."""
        if _is_held(body):
            return
        patch: JSONObject = {"metadata": {"labels": {HELD: "true"}}}
        try:
            await self._client.patch(UPDATE_REQUESTS, key.name, patch, key.namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise

    def _hold(self, key: ObjectKey, body: JSONObject, on: Iterable[Awaited], since: float) -> None:
        """Hold a request until its dependency or its policy changes."""
        if not self._held:
            self._held_versions = dict(self._versions())
        self._held[key] = str((body.get("spec") or {}).get("policy") or "")
        self.wakeups.wait(key, on, since=since)

    def _release(self, key: ObjectKey) -> None:
        self._held.pop(key, None)
        self._written.pop(key, None)
        self.wakeups.forget(key)

    async def _write_status(self, key: ObjectKey, body: JSONObject, state: str, reason: str, message: str) -> None:
        before = body.get("status") or {}
        wanted = status_of(before, state, reason, message)
        patch = status_patch(before, wanted)
        if patch is None:
            return
        self._written[key] = progress_of({"status": wanted})
        try:
            await self._client.patch(UPDATE_REQUESTS, key.name, patch, key.namespace, subresource="status")
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise


def lane_of(body: JSONObject, shards: int) -> int:
    """Return the shard of a request: those of one policy and trigger share it.

    >>> request = {"spec": {"policy": "copy", "ruleContext": [{"trigger": {"kind": "Namespace", "name": "team"}}]}}
    >>> lane_of(request, 1), lane_of(request, 4) == lane_of(request, 4)
    (0, True)
    """
    spec = body.get("spec") or {}
    contexts = spec.get("ruleContext") or ()
    trigger = ((contexts[0] or {}).get("trigger") if contexts else spec.get("resource")) or {}
    return shard_of(str(spec.get("policy") or ""), trigger, shards)


class _Intake:
    """Callers that wait until there is room for one more request."""

    def __init__(self) -> None:
        self._changed: list[Callable[[], None]] = []

    def note(self) -> None:
        """Have the condition looked at again."""
        waiting, self._changed = self._changed, []
        for each in waiting:
            each()

    async def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked whenever a request is deleted."""
        while not holds():
            event = asyncio.Event()
            self._changed.append(event.set)
            await event.wait()


def _read_awaited(error: PyvernoError) -> tuple[Awaited, ...]:
    """Return what a failed request waits for, judging by the API server's reason."""
    if not isinstance(error, StatusError):
        return ()
    is_namespace = error.status == _NOT_FOUND and error.kind in ("namespaces", "Namespace")
    return (Awaited(_NAMESPACES, "", error.name),) if is_namespace and error.name else ()


def _key(body: JSONObject) -> ObjectKey:
    return ObjectKey(body["metadata"].get("namespace") or "", body["metadata"]["name"])


def _is_held(body: JSONObject) -> bool:
    return HELD in (body["metadata"].get("labels") or {})


def _type(body: JSONObject) -> str:
    return str((body.get("spec") or {}).get("requestType") or "")


def _seconds(written: object) -> float:
    """Return an instant of an object in seconds since 1970."""
    try:
        return datetime.fromisoformat(str(written)).astimezone(UTC).timestamp()
    except ValueError:
        return time.time()
