"""Deletes objects whose time to live is over, of every kind that the controller may list, watch and delete.

Only the metadata of objects is watched, and only what decides their deletion is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from pyverno.cluster.informer import Notice
from pyverno.controllers.applier import Cause, Change
from pyverno.controllers.cleanup.agenda import Agenda
from pyverno.controllers.cleanup.context import CleanupContext
from pyverno.controllers.cleanup.protection import reason_to_keep
from pyverno.controllers.cleanup.ttlwatches import PROPAGATION, TtlWatches
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.engine.effects import DeleteEffect
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError, ValueSyntaxError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.kube.time.gotime import parse_rfc3339
from pyverno.kube.time.ttl import parse_ttl
from pyverno.webhook.cleanupreviews import TTL_LABEL

__all__ = ["TimesToLive", "deletable_kinds"]

_POLICIES: Final = ("Foreground", "Background", "Orphan")
_VERBS: Final = ("delete", "list", "watch")
_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "selfsubjectaccessreviews")
_SETTLE_SECONDS: Final = 1.0
_ASKED_AT_ONCE: Final = 4
_CONFLICT: Final = 409
_SECOND: Final = 1_000_000_000
_LOOK: Final = "all"
_CAUSE: Final = Cause(ResourceRef("", "Label", "", TTL_LABEL), "ttl")

log = logging.getLogger("pyverno.cleanup")


class _Key(NamedTuple):
    """One object: the kind by its number, and where it is."""

    kind: int
    namespace: str
    name: str


def deletable_kinds(kinds: KindTable) -> Iterator[KindInfo]:
    """Yield the kinds whose objects can be listed, watched and deleted, each in the version that the cluster prefers.

    >>> from pyverno.kube.kinds import KindInfo
    >>> pods = KindInfo("", "v1", "Pod", "pods", "pod", verbs=("delete", "list", "watch"))
    >>> metrics = KindInfo("metrics.k8s.io", "v1", "PodMetrics", "pods", "pod", verbs=("get", "list"))
    >>> [info.kind for info in deletable_kinds(KindTable([pods, metrics]))]
    ['Pod']
    """
    seen: set[tuple[str, str]] = set()
    for info in kinds:
        place = (info.group, info.plural)
        if place not in seen and all(verb in info.verbs for verb in _VERBS):
            seen.add(place)
            yield info


class TimesToLive:
    """Follows labels while its two `controllers` run: one looks for kinds, the other deletes what is due."""

    def __init__(self, context: CleanupContext, metrics: LoopMetrics | None = None) -> None:
        """Take what to work with; the loop's metrics are those of all controllers."""
        self._context = context
        self._watches = TtlWatches(context.client, self._take)
        self._agenda: Agenda[_Key] = Agenda(context.time.now, self._call)
        self._reported: dict[_Key, str] = {}
        settings = context.settings
        self._kinds: Controller[str] = Controller(
            "ttl-controller-manager",
            self._look,
            keys=lambda: (_LOOK,),
            settings=LoopSettings(settle_seconds=_SETTLE_SECONDS, backoff=settings.backoff),
            metrics=metrics,
        )
        self._objects: Controller[_Key] = Controller(
            "ttl-controller",
            self._reconcile,
            settings=LoopSettings(workers=settings.ttl_workers, backoff=Backoff(first=0.2, longest=60.0)),
            metrics=metrics,
        )
        context.metrics.watched = lambda: self._watches.watched
        context.state.listen(lambda: self._kinds.add(_LOOK))
        context.time.listen(self._agenda.wake)

    @property
    def is_idle(self) -> bool:
        """Return whether kinds are watched and nothing that is due is left."""
        return self._kinds.is_idle and self._objects.is_idle and self._watches.are_synced

    def __len__(self) -> int:
        """The number of objects whose time to live is not over."""
        return len(self._agenda)

    async def run(self) -> None:
        """Work until cancelled; nothing is remembered between two runs."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._objects.run())
                group.create_task(self._kinds.run())
        finally:
            await self._watches.end()
            self._agenda.clear()
            self._reported.clear()

    # ------------------------------------------------------------------------------------------------------- the kinds

    async def _look(self, _key: str) -> Again:
        """Watch the kinds that may be deleted, and stop watching those that may not any more.

        A kind whose permission cannot be read stays as it is; HostError is then raised, so that it is read again.
        """
        waiting = iter(tuple(deletable_kinds(self._context.state.kinds)))
        watched = {info.gvr for info in self._watches.watched}
        wanted: list[KindInfo] = []
        problems: list[str] = []

        async def work() -> None:
            for info in waiting:
                try:
                    is_allowed = await self._may_delete(info)
                except (HostError, StatusError) as error:
                    problems.append(f"permissions for {info.gvr} are unknown: {error.message}")
                    is_allowed = info.gvr in watched
                if is_allowed:
                    wanted.append(info)

        async with asyncio.TaskGroup() as group:
            for _ in range(_ASKED_AT_ONCE):
                group.create_task(work())
        gone = await self._watches.follow(wanted)
        if gone:
            self._agenda.discard_all(lambda key: key.kind in gone)
        if problems:
            raise HostError(problems[0])
        return Again(self._context.settings.ttl_seconds)

    async def _may_delete(self, info: KindInfo) -> bool:
        """Return whether the API server would let us list, watch and delete objects of a kind."""
        for verb in _VERBS:
            asked = {"verb": verb, "group": info.group, "version": info.version, "resource": info.plural}
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": asked},
            }
            found = await self._context.client.create(_REVIEWS, review)
            if not (found.get("status") or {}).get("allowed"):
                fields = {"resource": str(info.gvr), "verb": verb}
                log.debug("times to live of a resource are ignored: a permission is missing", extra={"fields": fields})
                return False
        return True

    # ----------------------------------------------------------------------------------------------------- the objects

    def _take(self, number: int, notice: Notice, body: JSONObject) -> None:
        """Note when an object is due, as its metadata have it now."""
        metadata = body["metadata"]
        key = _Key(number, metadata.get("namespace") or "", metadata["name"])
        if notice is Notice.DELETED or metadata.get("deletionTimestamp"):
            self._agenda.discard(key)
            self._reported.pop(key, None)
            return
        try:
            self._agenda.put(key, _due_time(metadata))
        except ValueSyntaxError as error:
            self._agenda.discard(key)
            fields = {"resource": str(self._ref(key)), "error": error.message}
            log.warning("a time to live cannot be read; the object stays", extra={"fields": fields})

    def _call(self, key: _Key) -> None:
        self._objects.add(key)

    async def _reconcile(self, key: _Key) -> None:
        """Delete an object that is due; the metadata that were watched last decide."""
        try:
            await self._delete_if_due(key)
        finally:
            self._agenda.done(key)  # one that failed is retried by the controller, and must not keep others waiting

    async def _delete_if_due(self, key: _Key) -> None:
        found = self._watches.get(key.kind, key.name, key.namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        metadata = found["metadata"]
        due = _due_time(metadata)
        if due > self._context.now():
            self._agenda.put(key, due)
        elif not self._is_kept(key, metadata):
            await self._delete(key, metadata)

    def _is_kept(self, key: _Key, metadata: JSONObject) -> bool:
        settings, state = self._context.settings, self._context.state
        reason = reason_to_keep(
            self._watches.kind(key.kind),
            metadata,
            state.configuration,
            own_namespace=settings.namespace,
            protects_managed=settings.protects_managed,
        )
        if reason:
            fields = {"resource": str(self._ref(key)), "reason": reason}
            log.info("the time to live of an object is over, but it is kept", extra={"fields": fields})
        return bool(reason)

    async def _delete(self, key: _Key, metadata: JSONObject) -> None:
        info, target = self._watches.kind(key.kind), self._ref(key)
        if self._context.settings.is_dry_run:
            log.info("would delete an object (dry run)", extra={"fields": {"resource": str(target)}})
            return
        wanted = (metadata.get("annotations") or {}).get(PROPAGATION, "")
        effect = DeleteEffect(target, wanted if wanted in _POLICIES else "")
        try:
            applied = await self._context.applier.apply(effect, _CAUSE, current={"metadata": metadata})
        except (HostError, StatusError) as error:
            # the watch is a moment behind: what it brings decides the next time
            if not isinstance(error, StatusError) or error.status != _CONFLICT:
                self._context.metrics.count_ttl(info, key.namespace, failed=True)
                self._report(key, target, error.message)
            raise
        self._reported.pop(key, None)
        if applied.change is Change.DELETED:
            self._context.metrics.count_ttl(info, key.namespace, failed=False)
            log.info("the time to live of an object is over", extra={"fields": {"resource": str(target)}})

    def _report(self, key: _Key, target: ResourceRef, error: str) -> None:
        """Report once why an object that is due still exists."""
        if self._reported.get(key) != error:
            self._reported[key] = error
            note = f"failed to clean up the target resource {target.kind}/{target.namespace}/{target.name}: {error}"
            self._context.notify(Event("PolicyError", "None", note, target, source="kyverno-cleanup"))

    def _ref(self, key: _Key) -> ResourceRef:
        info = self._watches.kind(key.kind)
        return ResourceRef(info.api_version, info.kind, key.namespace, key.name)


def _due_time(metadata: JSONObject) -> float:
    """Return when an object is to be deleted, in seconds since 1970; raises ValueSyntaxError for an unknown form."""
    created = parse_rfc3339(metadata.get("creationTimestamp") or "")
    return parse_ttl((metadata.get("labels") or {}).get(TTL_LABEL, ""), created).nanoseconds / _SECOND
