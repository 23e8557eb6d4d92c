"""The end of namespaces: everything inside is deleted first, then the namespace itself may go.

This module must never delete anything in a namespace that is not being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.conditions import condition, set_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import EVERYTHING, Keys, itself
from kubesandbox.controllers.objects import at, is_deleting, name_of, namespace_of, uid_of
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.storage.store import Change, Key
from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Namespaces", "deletion_conditions"]

FINALIZER = "kubernetes"


class Namespaces:
    """Empties namespaces that are being deleted."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Namespaces, and what leaves them."""
        return {"namespaces": itself, EVERYTHING: self._of_content}

    def _of_content(self, change: Change) -> Iterable[Key]:
        name = change.state.key.namespace
        namespace = self._context.client.get("namespaces", name) if name else None
        return (Key("namespaces", "", name),) if namespace is not None and is_deleting(namespace) else ()

    async def reconcile(self, key: Key) -> float | None:
        """Delete the objects in a terminating namespace; remove the finalizer once it is empty."""
        client = self._context.client
        body = client.get("namespaces", key.name)
        if body is None or not is_deleting(body) or FINALIZER not in _finalizers(body):
            return None
        problems = await self._empty(key.name)
        left = {found.key: objects for found in self._types() if (objects := client.list(found.key, key.name))}
        body = client.get("namespaces", key.name)
        if body is None:
            return None
        conditions = deletion_conditions(conditions_of(body), left, problems, self._context.clock.now())
        body = await self._context.put_status(
            "namespaces", body, {**body.get("status", {}), "phase": "Terminating", "conditions": conditions}
        )
        if problems:
            raise problems[0]
        if not left:
            kept = [name for name in _finalizers(body) if name != FINALIZER]
            without = {**body, "spec": {**body["spec"], "finalizers": kept}}
            await client.update("namespaces", without, subresource="finalize")
        return None

    def _types(self) -> Iterable[ResourceType]:
        seen: dict[str, ResourceType] = {}
        for found in self._context.types():
            if found.namespaced and "delete" in found.verbs and found.key not in seen:
                seen[found.key] = found
        return seen.values()

    async def _empty(self, namespace: str) -> list[StatusError]:
        problems = []
        for found in self._types():
            for body in self._context.client.list(found.key, namespace):
                if is_deleting(body):
                    continue
                try:
                    await self._context.client.delete(
                        found.key, name_of(body), namespace_of(body), uid=uid_of(body), propagation="Background"
                    )
                except StatusError as error:
                    if error.reason not in ("NotFound", "Conflict"):
                        problems.append(error)
        return problems


def deletion_conditions(
    conditions: Sequence[JSONObject],
    left: Mapping[str, Sequence[JSONObject]],
    problems: Sequence[StatusError],
    now: datetime,
) -> list[JSONObject]:
    """Return the conditions of a namespace that is being deleted: `left` are its objects by resource."""
    total = sum(map(len, left.values()))
    finalizers: dict[str, int] = {}
    for body in (item for objects in left.values() for item in objects):
        for name in at(body, "metadata", "finalizers", default=[]):
            finalizers[name] = finalizers.get(name, 0) + 1
    resources = ", ".join(
        f"{resource}{'' if '.' in resource else '.'} has {len(found)} resource instances"
        for resource, found in sorted(left.items())
    )
    waiting = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    refused = ", ".join(map(str, problems))
    table = (
        ("NamespaceDeletionDiscoveryFailure", "", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            refused and f"Failed to delete all resource types, {len(problems)} remaining: {refused}",
            "ContentDeletionFailed" if refused else "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            total and f"Some resources are remaining: {resources}",
            "SomeResourcesRemain" if total else "ContentRemoved",
            "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            waiting and f"Some content in the namespace has finalizers remaining: {waiting}",
            "SomeFinalizersRemain" if waiting else "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    )
    found = list(conditions)
    for kind, trouble, reason, fine in table:
        status = "True" if trouble else "False"
        found = set_condition(found, condition(kind, status, now, reason=reason, message=str(trouble or fine)))
    return found


def _finalizers(body: JSONObject) -> list[str]:
    found: list[str] = at(body, "spec", "finalizers", default=[])
    return found
