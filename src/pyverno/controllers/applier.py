"""The one place that performs effects: creates, changes and deletes objects for the rules of all controllers.

Performing an effect again changes nothing: the stored object decides what has to be written, never what was written
before. Every change carries a precondition, so that an object that changed since it was read is not overwritten. This
module must never write an object without its guard.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import orjson

from pyverno.cluster.accessreviews import decision_of, resource_review
from pyverno.cluster.client import APPLY_PATCH, Client
from pyverno.controllers.rights.authors import AuthorRights
from pyverno.controllers.rights.demands import Demand
from pyverno.controllers.state.settings import PolicyRights
from pyverno.controllers.writeguard import QuarantinedError, WriteGuard, WriteKey
from pyverno.engine.effects import CreateEffect, DeleteEffect, Effect, PatchEffect
from pyverno.engine.origin import KYVERNO, MANAGED_BY
from pyverno.engine.request import User
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["CAUSE_ANNOTATION", "Applied", "Cause", "Change", "EffectApplier"]

CAUSE_ANNOTATION: Final = "pyverno.io/last-change"
"""On generated objects: policy, rule and trigger of the last change, and its reason, as JSON."""

FIELD_MANAGER: Final = "generate"
_REVIEWS: Final = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
_ATTEMPTS: Final = 5
_MAX_STORED: Final = 20_000
_NOT_FOUND: Final = 404
_Answer = TypeVar("_Answer")
_CONFLICT: Final = 409
_SERVER_FIELDS: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Metadata that the API server sets."""


class Change(StrEnum):
    """The change that an effect made."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason of a write, as in the object's annotation, in events and in the log.

    `source` is what the object is a copy of. An object that `goes_with_policy` is deleted when its rule is gone;
    `generation` is that of the policy. With a `requester` the object is written only if that user may write it too, and
    for a policy of a namespace only if its `author` may.
    """

    policy: ResourceRef
    rule: str
    trigger: ResourceRef | None = None
    reason: str = ""
    source: ResourceRef | None = None
    goes_with_policy: bool = False
    generation: int = 0
    requester: User | None = None
    author: User | None = None

    def annotation(self) -> str:
        """Return the value of the annotation.

        >>> trigger = ResourceRef("v1", "Namespace", "", "team")
        >>> Cause(ResourceRef("kyverno.io/v1", "ClusterPolicy", "", "copy"), "secret", trigger, "created").annotation()
        '{"policy":"ClusterPolicy/copy","rule":"secret","trigger":"Namespace/team","reason":"created"}'
        """
        parts = {
            "policy": str(self.policy),
            "rule": self.rule,
            "trigger": "" if self.trigger is None else str(self.trigger),
            "source": "" if self.source is None else str(self.source),
            "reason": self.reason,
            "onPolicyDeletion": "delete" if self.goes_with_policy else "",
            "policyGeneration": self.generation,
        }
        return orjson.dumps({key: value for key, value in parts.items() if value}).decode()


@dataclass(frozen=True, slots=True)
class Applied:
    """A performed effect: what changed, of which object, and the object as it is stored now (None = gone)."""

    effect: Effect
    change: Change
    target: ResourceRef
    body: JSONObject | None = None


class EffectApplier:
    """Performs effects with one client; used by everything that runs in the event loop."""

    def __init__(
        self,
        client: Client,
        kinds: Callable[[], KindTable],
        *,
        guard: WriteGuard | None = None,
        rights: AuthorRights | None = None,
        on_applied: Callable[[Applied, Cause], None] = lambda _applied, _cause: None,
        on_quarantine: Callable[[QuarantinedError, WriteKey], None] = lambda _error, _key: None,
    ) -> None:
        """Take the client, the kinds that the cluster serves, the guard, and the check of authors' permissions.

        `on_applied` receives performed effects, `on_quarantine` the first error of each quarantine.
        """
        self._client = client
        self._kinds = kinds
        self._guard = guard or WriteGuard()
        self._rights = rights or AuthorRights(client, kinds, PolicyRights.AUTHOR)
        self._on_applied = on_applied
        self._on_quarantine = on_quarantine
        self._stored: dict[ResourceRef, _Stored] = {}

    async def apply(self, effect: Effect, cause: Cause, *, current: JSONObject | None = None) -> Applied:
        """Bring the target to what the effect describes.

        `current` is the target as a watch brought it last, if it is known; without it, an object is created without
        being read first. Raises StatusError with the API server's reason, HostError without an answer, and
        QuarantinedError for a target that the rule has changed too often. A conflict of a patch or a deletion is for
        the caller, who has to evaluate the rule on the changed object.
        """
        match effect:
            case CreateEffect():
                applied = await self._create(effect, cause, current)
            case PatchEffect():
                applied = await self._patch(effect, cause)
            case DeleteEffect():
                applied = await self._delete(effect, cause, current)
        self._on_applied(applied, cause)
        return applied

    # ------------------------------------------------------------------------------------------------------- creation

    async def _create(self, effect: CreateEffect, cause: Cause, current: JSONObject | None) -> Applied:
        gvr, body = self._place(effect.resource, cause)
        namespace, name = body["metadata"].get("namespace") or "", body["metadata"]["name"]
        target = ResourceRef.of(body)
        key = WriteKey(target, cause.policy, cause.rule, cause.trigger)
        if effect.source is not None:
            await self._authorize_copy(cause, effect.source)
        for _ in range(_ATTEMPTS):
            try:
                if effect.server_side_apply:
                    return await self._apply_on_server(effect, gvr, body, key, cause)
                if current is None:
                    await self.authorize(cause, "create", gvr, target, body=body)
                    made = await self._write(key, self._client.store(gvr, body, namespace))
                    self._guard.note_written(key)
                    self._remember(target, body, made)
                    return Applied(effect, Change.CREATED, target, made)
                if not effect.synchronize or not _may_change(effect, current):
                    return Applied(effect, Change.UNCHANGED, target, current)
                return await self._update(effect, body, current, key, cause)
            except StatusError as error:
                # a 404 of a creation means the namespace, one of an update an object that was deleted since
                if error.status != _CONFLICT and (error.status != _NOT_FOUND or current is None):
                    raise
                current = await self._read(gvr, name, namespace)
            if current is not None and current["metadata"].get("deletionTimestamp"):
                raise HostError(f"{target} is being deleted, and can be created again when it is gone")
        raise HostError(f"{target} changed {_ATTEMPTS} times while it was written")

    async def _update(
        self, effect: CreateEffect, body: JSONObject, current: JSONObject, key: WriteKey, cause: Cause
    ) -> Applied:
        gvr = self._info(key.target).gvr
        wanted = _merge(current, body)
        if _essence(wanted) == _essence(current) or self._is_as_stored(key.target, body, current):
            return Applied(effect, Change.UNCHANGED, key.target, current)
        namespace = body["metadata"].get("namespace") or ""
        is_known = key.target in self._stored or CAUSE_ANNOTATION not in (current["metadata"].get("annotations") or {})
        if not is_known and await self._is_as_defaulted(gvr, wanted, current, namespace):
            self._remember(key.target, body, current)
            return Applied(effect, Change.UNCHANGED, key.target, current)
        await self.authorize(cause, "update", gvr, key.target, body=wanted)
        stored = await self._write(key, self._client.update(gvr, wanted, namespace))
        self._remember(key.target, body, stored)
        return self._compared(effect, key, current, stored)

    async def _apply_on_server(
        self, effect: CreateEffect, gvr: GVR, body: JSONObject, key: WriteKey, cause: Cause
    ) -> Applied:
        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace") or ""
        current = await self._read(gvr, name, namespace)
        if current is not None and not (effect.synchronize and _may_change(effect, current)):
            return Applied(effect, Change.UNCHANGED, key.target, current)
        for verb in ("create", "patch") if current is None else ("patch",):
            await self.authorize(cause, verb, gvr, key.target, body=body)
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        stored = await self._write(key, self._client.patch(gvr, name, body, namespace, kind=APPLY_PATCH, query=query))
        if current is None:
            self._guard.note_written(key)
            return Applied(effect, Change.CREATED, key.target, stored)
        return self._compared(effect, key, current, stored)

    def _place(self, resource: JSONObject, cause: Cause) -> tuple[GVR, JSONObject]:
        """Return the resource of an object, and the object with its namespace and annotation."""
        target = ResourceRef.of(resource)
        info = self._info(target)
        if not target.name:
            raise HostError(f"an object of kind {target.kind} to generate has no name")
        metadata = {key: value for key, value in resource["metadata"].items() if key not in _SERVER_FIELDS}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), CAUSE_ANNOTATION: cause.annotation()}
        if info.namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
        else:
            metadata.pop("namespace", None)
        _confine(cause, target, metadata.get("namespace") or "")
        return info.gvr, {**resource, "metadata": metadata}

    # ---------------------------------------------------------------------------------------------- patch and deletion

    async def _patch(self, effect: PatchEffect, cause: Cause) -> Applied:
        target, before, after = effect.target, effect.before, effect.after
        if not isinstance(before, dict) or not isinstance(after, dict):
            raise HostError(f"a patch of {target} is not of an object")
        if before == after:
            return Applied(effect, Change.UNCHANGED, target, before)
        info = self._info(target)
        _confine(cause, target, target.namespace if info.namespaced else "")
        version = before["metadata"].get("resourceVersion")
        body = {**after, "metadata": {**after["metadata"], "resourceVersion": version}}
        key = WriteKey(target, cause.policy, cause.rule, cause.trigger)
        await self.authorize(cause, "update", info.gvr, target, body=body, subresource=effect.subresource)
        sent = self._client.update(info.gvr, body, target.namespace, subresource=effect.subresource)
        stored = await self._write(key, sent)
        return self._compared(effect, key, before, stored)

    async def _delete(self, effect: DeleteEffect, cause: Cause, current: JSONObject | None) -> Applied:
        target = effect.target
        info = self._info(target)
        gvr = info.gvr
        _confine(cause, target, target.namespace if info.namespaced else "")
        found = current if current is not None else await self._read(gvr, target.name, target.namespace)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return Applied(effect, Change.UNCHANGED, target, found)
        judged = {key: found["metadata"][key] for key in ("uid", "resourceVersion") if found["metadata"].get(key)}
        options: JSONObject = {"preconditions": judged}
        if effect.propagation_policy:
            options["propagationPolicy"] = effect.propagation_policy
        key = WriteKey(target, cause.policy, cause.rule, cause.trigger)
        await self.authorize(cause, "delete", gvr, target)
        try:
            await self._write(key, self._client.discard(gvr, target.name, target.namespace, options=options))
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return Applied(effect, Change.UNCHANGED, target)
        self._guard.note_written(key)
        return Applied(effect, Change.DELETED, target)

    # ---------------------------------------------------------------------------------------------------------- parts

    async def authorize(
        self,
        cause: Cause,
        verb: str,
        gvr: GVR,
        target: ResourceRef,
        *,
        body: JSONObject | None = None,
        subresource: str = "",
    ) -> None:
        """Raise StatusError (403) if the author or the requester may not do what the rule does next."""
        demand = Demand(verb, gvr.group, gvr.resource, subresource, target.name, body=body)
        await self._rights.require(cause.policy, cause.author, demand)
        if cause.requester is None:
            return
        attributes = {"group": gvr.group, "resource": gvr.resource, "subresource": subresource}
        place = {"namespace": target.namespace, "name": target.name}
        review = resource_review(cause.requester, verb, {**attributes, **place})
        if not decision_of(await self._client.create(_REVIEWS, review)).allowed:
            what = f"{gvr.resource}/{subresource}" if subresource else gvr.resource
            where = f" in the namespace `{target.namespace}`" if target.namespace else ""
            raise StatusError(
                403,
                "Forbidden",
                f"user `{cause.requester.username}` cannot {verb} {what}{where}, and the policy acts with the "
                "permissions of its requesters",
            )

    async def _authorize_copy(self, cause: Cause, source: ResourceRef) -> None:
        """Raise StatusError (403) if the author of a namespaced policy may not read what the policy copies."""
        gvr = self._info(source).gvr
        demand = Demand("get", gvr.group, gvr.resource, name=source.name)
        await self._rights.require(cause.policy, cause.author, demand)

    async def _write(self, key: WriteKey, sending: Coroutine[None, None, _Answer]) -> _Answer:
        """Send one write if the guard allows it; only one that the API server accepted counts.

        A write without an answer, as when a lease is lost meanwhile, is not counted either: the next attempt finds out
        whether it was performed, and changes nothing if it was.
        """
        try:
            self._guard.enter(key)
        except QuarantinedError as error:
            sending.close()
            if error.is_new:
                self._on_quarantine(error, key)
            raise
        try:
            return await sending
        except BaseException:
            self._guard.leave(key)
            raise

    def _compared(self, effect: Effect, key: WriteKey, before: JSONObject, stored: JSONObject) -> Applied:
        """Return what a write changed: the API server keeps the version of an object that stays the same."""
        if stored["metadata"].get("resourceVersion") == before["metadata"].get("resourceVersion"):
            self._guard.leave(key)
            return Applied(effect, Change.UNCHANGED, key.target, stored)
        self._guard.note_written(key)
        return Applied(effect, Change.UPDATED, key.target, stored)

    def _is_as_stored(self, target: ResourceRef, wanted: JSONObject, current: JSONObject) -> bool:
        """Return whether sending an object again would change nothing, because it was stored like this before."""
        known = self._stored.get(target)
        return known is not None and known == _Stored.of(wanted, current)

    async def _is_as_defaulted(self, gvr: GVR, wanted: JSONObject, current: JSONObject, namespace: str) -> bool:
        """Return whether an object that this process has not written yet differs only by what the API server fills in.

        Otherwise every object with defaults were written again after a restart, with a new reason.
        """
        sent = await self._client.update(gvr, wanted, namespace, query={"dryRun": "All"})
        return _essence(sent) == _essence(current)

    def _remember(self, target: ResourceRef, wanted: JSONObject, stored: JSONObject) -> None:
        self._stored[target] = _Stored.of(wanted, stored)
        if len(self._stored) > _MAX_STORED:
            del self._stored[next(iter(self._stored))]

    async def _read(self, gvr: GVR, name: str, namespace: str) -> JSONObject | None:
        try:
            return await self._client.get(gvr, name, namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    def _info(self, target: ResourceRef) -> KindInfo:
        info = self._kinds().find(GVK(*parse_api_version(target.api_version), target.kind))
        if info is None:
            raise HostError(f"the cluster does not serve {target.api_version} {target.kind}")
        return info


class _Stored(NamedTuple):
    """Digests of an object as a rule wants it, and as the API server stored it: with defaults, in its own form."""

    wanted: bytes
    stored: bytes

    @classmethod
    def of(cls, wanted: JSONObject, stored: JSONObject) -> _Stored:
        """Return the digests of both objects."""
        rest = stored if "status" in wanted else {key: value for key, value in stored.items() if key != "status"}
        return cls(_digest(wanted), _digest(rest))


def _digest(body: JSONObject) -> bytes:
    return blake2b(orjson.dumps(_essence(body), option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _may_change(effect: CreateEffect, current: JSONObject) -> bool:
    """Return whether an existing object is one that the rule may take over."""
    return effect.adopts or (current["metadata"].get("labels") or {}).get(MANAGED_BY) == KYVERNO


def _confine(cause: Cause, target: ResourceRef, namespace: str) -> None:
    """Raise unless a policy of a namespace writes in it: the engine refuses the same, with the kinds that it knows."""
    own = cause.policy.namespace
    if own and namespace != own:
        raise HostError(f"a policy of namespace `{own}` may not write {target}")


def _merge(current: JSONObject, wanted: JSONObject) -> JSONObject:
    """Return the object to send: what the rule wants, with the labels, annotations and owners that others set.

    >>> current = {"metadata": {"name": "a", "labels": {"team": "x"}, "resourceVersion": "7"}, "data": {"a": "1"}}
    >>> _merge(current, {"metadata": {"name": "a", "labels": {"app": "y"}}, "data": {"b": "2"}})["data"]
    {'b': '2'}
    """
    old, new = current["metadata"], wanted["metadata"]
    metadata = {**old, **new}
    for key in ("labels", "annotations"):
        if old.get(key) or new.get(key):
            metadata[key] = {**(old.get(key) or {}), **(new.get(key) or {})}
    body = {**wanted, "metadata": metadata}
    if "status" in current and "status" not in wanted:
        body["status"] = current["status"]
    return body


def _essence(body: JSONObject) -> JSONObject:
    """Return an object without its server-set fields and the annotation with the cause of the write."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_FIELDS}
    annotations = {**(metadata.pop("annotations", None) or {})}
    annotations.pop(CAUSE_ANNOTATION, None)
    return {**body, "metadata": {**metadata, "annotations": annotations}}
