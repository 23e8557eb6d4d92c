"""The context of every controller: its client, the clock, a recorder of events, and the types that are served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from kubesandbox.controllers.clock import Clock
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.objects import (
    adoption,
    at,
    claim,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    with_status,
    without_owner,
)
from kubesandbox.controllers.recorder import Recorder
from kubesandbox.local import LocalClient
from kubesandbox.storage.store import Change, Key
from kubesandbox.types.resources import ResourceTable
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.selector import LabelTest, compile_selector
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["ControllerContext", "is_namespace_ending", "selector_of"]

BURST = 500
"""The limit of pods that one reconciliation creates or deletes."""


def selector_of(body: JSONObject) -> LabelTest:
    """Return the test of `spec.selector`; a map without operators, as old kinds have it, is read as labels."""
    selector: JSONObject | None = at(body, "spec", "selector")
    if selector and not selector.keys() & {"matchLabels", "matchExpressions"}:
        selector = {"matchLabels": selector}
    return compile_selector(selector)


def is_namespace_ending(error: StatusError) -> bool:
    """Return whether a request was refused because its namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """The tools of one controller."""

    client: LocalClient
    clock: Clock
    events: Recorder
    types: Callable[[], ResourceTable]

    def owner(self, resource: str, kind: str, *, adopts: bool = True) -> Keys:
        """Return the owners of a kind that a change concerns: the controller, or possible adopters of an orphan."""

        def keys(change: Change) -> Iterable[Key]:
            bodies = [change.state.body, *([change.before.body] if change.before else [])]
            found: dict[Key, None] = {}
            for body in bodies:
                reference = controller_of(body)
                if reference is not None and reference.get("kind") == kind:
                    found[Key(resource, namespace_of(body), str(reference["name"]))] = None
            if adopts and controller_of(change.state.body) is None:
                found.update(dict.fromkeys(self.selecting(resource, change.state.body)))
            return found

        return keys

    def selecting(self, resource: str, body: JSONObject) -> list[Key]:
        """Return the objects of a resource whose selector selects an object in the same namespace."""
        labels = labels_of(body)
        return [
            key_of(resource, item)
            for item in self.client.list(resource, namespace_of(body))
            if at(item, "spec", "selector") and selector_of(item)(labels)
        ]

    async def claimed(
        self,
        resource: str,
        owner: JSONObject,
        *,
        may_adopt: Callable[[JSONObject], bool] = lambda _body: True,
    ) -> list[JSONObject]:
        """Return the objects of an owner, after adopting and releasing objects by its selector."""
        found = claim(owner, self.client.list(resource, namespace_of(owner)), selector_of(owner), may_adopt=may_adopt)
        for body in found.released:
            await self.client.patch(resource, name_of(body), namespace_of(body), without_owner(body, [uid_of(owner)]))
        adopted = [
            await self.client.patch(resource, name_of(body), namespace_of(body), adoption(body, owner))
            for body in found.adopted
        ]
        return [*found.owned, *adopted]

    async def put_status(self, resource: str, body: JSONObject, status: JSONObject) -> JSONObject:
        """Write a status unless the object has it."""
        if equal(body.get("status"), status):
            return body
        return await self.client.update(resource, with_status(body, status), subresource="status")

    async def create_pods(self, owner: JSONObject, pods: Sequence[JSONObject]) -> None:
        """Create pods in growing batches while that succeeds; raises the first refusal.

        Nothing is raised when the namespace is being deleted.
        """
        # upstream calls it a slow start: one refusal costs one request, not hundreds
        waiting, batch = list(pods[:BURST]), 1
        while waiting:
            now, waiting = waiting[:batch], waiting[batch:]
            results = await asyncio.gather(*(self._create_pod(owner, pod) for pod in now), return_exceptions=True)
            errors = [result for result in results if isinstance(result, BaseException)]
            if errors:
                if isinstance(errors[0], StatusError) and is_namespace_ending(errors[0]):
                    return
                raise errors[0]
            batch *= 2

    async def delete_pods(self, owner: JSONObject, pods: Sequence[JSONObject]) -> None:
        """Delete pods; pods that no longer exist count as deleted."""
        for pod in pods[:BURST]:
            if is_deleting(pod):
                continue
            try:
                await self.client.delete("pods", name_of(pod), namespace_of(pod), uid=uid_of(pod))
            except StatusError as error:
                if error.reason != "NotFound":
                    self.events.warning(owner, "FailedDelete", f"Error deleting: {error}")
                    raise
            else:
                self.events.normal(owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    async def _create_pod(self, owner: JSONObject, pod: JSONObject) -> JSON:
        try:
            created = await self.client.create("pods", pod)
        except StatusError as error:
            if not is_namespace_ending(error):
                self.events.warning(owner, "FailedCreate", f"Error creating: {error}")
            raise
        self.events.normal(owner, "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return created
