"""The garbage collector: deletes objects without living owners, and performs foreground deletion and orphaning.

Owners are looked up in the store, never assumed. This module must never delete an object that has an owner left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import EVERYTHING, Keys
from kubesandbox.controllers.objects import (
    at,
    is_deleting,
    namespace_of,
    owners_of,
    uid_of,
    without_owner,
)
from kubesandbox.controllers.ownergraph import OwnerGraph
from kubesandbox.storage.store import Change, ChangeKind, Key
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["GarbageCollector"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner references of one object, by owners that exist, are gone, or wait for their dependents."""

    solid: tuple[JSONObject, ...] = ()
    dangling: tuple[JSONObject, ...] = ()
    waiting: tuple[JSONObject, ...] = ()


class GarbageCollector:
    """Watches all objects and deletes those whose owners no longer exist."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context
        self._graph = OwnerGraph()

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Everything."""
        return {EVERYTHING: self._of}

    def _of(self, change: Change) -> Iterable[Key]:
        key, body = change.state.key, change.state.body
        if change.kind is ChangeKind.DELETED:
            self._graph.remove(key)
            owners = [self._graph.place(str(owner.get("uid"))) for owner in owners_of(body)]
            return [*self._graph.dependents(uid_of(body)), *(owner for owner in owners if owner is not None)]
        self._graph.put(key, body)
        is_same = change.before is not None and owners_of(change.before.body) == owners_of(body)
        return (key,) if is_deleting(body) or (owners_of(body) and not is_same) else ()

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object up to date."""
        body = self._context.client.get(key.resource, key.name, key.namespace)
        if body is None:
            return None
        finalizers = at(body, "metadata", "finalizers", default=[])
        try:
            if is_deleting(body):
                if ORPHAN in finalizers:
                    await self._orphan(key, body)
                elif FOREGROUND in finalizers:
                    await self._finish_foreground(key, body)
                return None
            if owners_of(body):
                await self._collect_if_orphaned(key, body)
        except StatusError as error:
            if error.reason != "NotFound":
                raise
        return None

    async def _collect_if_orphaned(self, key: Key, body: JSONObject) -> None:
        """Delete an object without living owners; else remove references to owners that are gone."""
        client = self._context.client
        owners = self._owners(body)
        if owners.solid:
            gone = [str(owner["uid"]) for owner in (*owners.dangling, *owners.waiting)]
            if gone:
                await client.patch(key.resource, key.name, key.namespace, without_owner(body, gone))
            return
        dependents = self._dependents(body)
        if owners.waiting and dependents:
            if any(FOREGROUND in at(item, "metadata", "finalizers", default=[]) for _, item in dependents):
                # a circle of objects that wait for one another would never end
                body = await client.patch(key.resource, key.name, key.namespace, _unblocked(body))
            propagation = "Foreground"
        else:
            finalizers = at(body, "metadata", "finalizers", default=[])
            by_finalizer = {ORPHAN: "Orphan", FOREGROUND: "Foreground"}
            propagation = next((by_finalizer[name] for name in finalizers if name in by_finalizer), "Background")
        await client.delete(key.resource, key.name, key.namespace, uid=uid_of(body), propagation=propagation)

    def _owners(self, body: JSONObject) -> Owners:
        solid, dangling, waiting = [], [], []
        for reference in owners_of(body):
            owner = self._find(reference, body)
            if owner is None:
                dangling.append(reference)
            elif is_deleting(owner) and FOREGROUND in at(owner, "metadata", "finalizers", default=[]):
                waiting.append(reference)
            else:
                solid.append(reference)
        return Owners(tuple(solid), tuple(dangling), tuple(waiting))

    def _find(self, reference: JSONObject, body: JSONObject) -> JSONObject | None:
        """Return the owner that a reference names; an empty object if that is unknown."""
        group, version = parse_api_version(str(reference.get("apiVersion", "")))
        types = self._context.types()
        found = types.by_kind(GVK(group, version, str(reference.get("kind", ""))))
        unknown: JSONObject = {}
        if found is None:
            # upstream: no owner of a kind that is not served counts as gone
            return unknown
        if found.namespaced and not namespace_of(body):
            self._report(reference, body, f'ownerRef {_format_reference(reference)} does not exist in namespace ""')
            return unknown
        namespace = namespace_of(body) if found.namespaced else ""
        owner = self._context.client.get(found.key, str(reference.get("name", "")), namespace)
        if owner is not None and uid_of(owner) == reference.get("uid"):
            return owner
        place = self._graph.place(str(reference.get("uid")))
        if place is not None and found.namespaced and place.namespace != namespace_of(body):
            text = f'ownerRef {_format_reference(reference)} does not exist in namespace "{namespace_of(body)}"'
            self._report(reference, body, text)
        return None

    def _report(self, reference: JSONObject, body: JSONObject, message: str) -> None:
        if reference.get("uid"):
            self._context.events.warning(body, "OwnerRefInvalidNamespace", message)

    def _dependents(self, body: JSONObject) -> list[tuple[Key, JSONObject]]:
        found = []
        for key in self._graph.dependents(uid_of(body)):
            item = self._context.client.get(key.resource, key.name, key.namespace)
            if item is not None and any(owner.get("uid") == uid_of(body) for owner in owners_of(item)):
                found.append((key, item))
        return found

    async def _finish_foreground(self, key: Key, body: JSONObject) -> None:
        """Delete the dependents of a waiting owner; remove its finalizer when no dependent blocks it."""
        blocking = [
            (place, item)
            for place, item in self._dependents(body)
            if any(owner.get("uid") == uid_of(body) and owner.get("blockOwnerDeletion") for owner in owners_of(item))
        ]
        if not blocking:
            await self._drop_finalizer(key, body, FOREGROUND)
            return
        for place, item in self._dependents(body):
            if not is_deleting(item):
                await self._try_collect(place, item)

    async def _try_collect(self, key: Key, body: JSONObject) -> None:
        try:
            await self._collect_if_orphaned(key, body)
        except StatusError as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise

    async def _orphan(self, key: Key, body: JSONObject) -> None:
        """Remove the owner from the references of its dependents, then remove its finalizer."""
        for place, item in self._dependents(body):
            try:
                patch = without_owner(item, [uid_of(body)])
                await self._context.client.patch(place.resource, place.name, place.namespace, patch)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
        await self._drop_finalizer(key, body, ORPHAN)

    async def _drop_finalizer(self, key: Key, body: JSONObject, finalizer: str) -> None:
        kept = [name for name in at(body, "metadata", "finalizers", default=[]) if name != finalizer]
        version = at(body, "metadata", "resourceVersion")
        patch = {"metadata": {"resourceVersion": version, "uid": uid_of(body), "finalizers": kept or None}}
        await self._context.client.patch(key.resource, key.name, key.namespace, patch)


def _unblocked(body: JSONObject) -> JSONObject:
    owners = [{**owner, "blockOwnerDeletion": False} for owner in owners_of(body)]
    version = at(body, "metadata", "resourceVersion")
    return {"metadata": {"resourceVersion": version, "uid": uid_of(body), "ownerReferences": owners}}


def _format_reference(reference: JSONObject) -> str:
    """Write an owner reference as the collector's events do."""
    fields = ("apiVersion", "kind", "name", "uid")
    parts = ", ".join(f"{field}: {reference.get(field, '')}" for field in fields)
    return f"[{parts}]"
