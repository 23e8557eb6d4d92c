"""Resources that policies match and that the API server does not list, for lack of permission or because it cannot.

Their absence must never look like "no violations": each policy that needs such a resource has a report with an
error, one event, and the resource is a series of a metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.plan import ScanPlan
from pyverno.controllers.reports.reportindex import resource_of
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.scannedkinds import matched_kinds
from pyverno.engine.result import ResourceRef
from pyverno.engine.rule import CompiledPolicy
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError

__all__ = ["UNREADABLE", "Unreadable"]

UNREADABLE: Final = "unreadable"
"""The property of such an error that names the resources."""

_WITHOUT_OBJECTS: Final = (404, 405)
"""A resource that is not served any more, or that cannot be listed at all, such as reviews."""

_SOURCE: Final = "kyverno-scan"


class Unreadable:
    """Keeps refusals by resource; `on_change` is called with the policies whose reports follow from them."""

    def __init__(
        self,
        kinds: Callable[[], KindTable],
        uid_of: Callable[[ResourceRef], str],
        *,
        notify: Callable[[Event], None],
        on_change: Callable[[ObjectId], None],
    ) -> None:
        """Take the kinds that the cluster serves, what knows uids of policies, and receivers of events and changes."""
        self._kinds = kinds
        self._uid_of = uid_of
        self._notify = notify
        self._on_change = on_change
        self._refused: dict[GVR, str] = {}
        self._told: set[tuple[ResourceRef, GVR]] = set()
        self._reports: dict[ObjectId, tuple[ResourceRef, list[JSONObject]]] = {}
        self._plan = ScanPlan()

    def note(self, gvr: GVR, error: StatusError | None) -> None:
        """Take notice that a list was refused, or succeeded (None)."""
        before = self._refused.get(gvr)
        if error is not None and error.status not in _WITHOUT_OBJECTS:
            self._refused[gvr] = error.message
        else:
            self._refused.pop(gvr, None)
        if before != self._refused.get(gvr):
            self.follow(self._plan)

    def follow(self, plan: ScanPlan) -> None:
        """Work out which policies are affected."""
        self._plan = plan
        before, self._reports = self._reports, dict(self._affected_objects())
        for id in before.keys() | self._reports.keys():
            if before.get(id) != self._reports.get(id):
                self._on_change(id)

    def find(self, id: ObjectId) -> tuple[ResourceRef, list[JSONObject]] | None:
        """Return a policy that needs what cannot be listed, and the errors for its report."""
        return self._reports.get(id)

    def waiting(self) -> tuple[ObjectId, ...]:
        """Return the policies that need what cannot be listed."""
        return tuple(self._reports)

    def readings(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield a series for each resource that is refused."""
        for gvr in sorted(self._refused):
            yield (_format_resource(gvr),), 1

    def _affected_objects(self) -> Iterator[tuple[ObjectId, tuple[ResourceRef, list[JSONObject]]]]:
        if not self._refused:
            self._told.clear()
            return
        for policy in self._plan.policies:
            matched = {info.gvr for info in matched_kinds([policy], self._kinds())}
            missing = [gvr for gvr in sorted(self._refused) if gvr in matched]
            ref = ResourceRef(policy.info.api_version, policy.info.kind, policy.info.namespace, policy.info.name)
            uid = self._uid_of(ref)
            if missing and uid:
                group, resource = resource_of(ref.api_version, ref.kind, self._kinds())
                id = ObjectId(group, resource, ref.namespace, uid)
                yield id, (ref, list(self._items(policy, ref, missing)))

    def _items(self, policy: CompiledPolicy, ref: ResourceRef, missing: Sequence[GVR]) -> Iterator[JSONObject]:
        texts = [f"{_format_resource(gvr)} cannot be listed: {self._refused[gvr]}" for gvr in missing]
        for gvr, text in zip(missing, texts, strict=True):
            if (ref, gvr) not in self._told:
                self._told.add((ref, gvr))
                self._notify(Event.of_error(ref, f"background scan: {text}", ref, source=_SOURCE))
        yield {
            "source": policy.info.source,
            "policy": policy.info.key,
            "result": "error",
            "scored": True,
            "message": "; ".join(texts),
            "properties": {"process": "background scan", UNREADABLE: ", ".join(map(_format_resource, missing))},
        }


def _format_resource(gvr: GVR) -> str:
    return f"{gvr.resource}.{gvr.group}" if gvr.group else gvr.resource
