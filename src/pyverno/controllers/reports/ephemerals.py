"""The EphemeralReports that wait to be merged into reports, by their object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.reportindex import resource_of
from pyverno.engine.result import ResourceRef
from pyverno.kube.gvk import GVR, join_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.value import dataclass

__all__ = ["Ephemeral", "Ephemerals"]

_PREFIX: Final = "audit.kyverno.io/"
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """One ephemeral report: its place and uid, its object, when it was made, and its results."""

    namespace: str
    name: str
    uid: str
    ref: ResourceRef
    created: float
    results: tuple[JSONObject, ...]

    @property
    def gvr(self) -> GVR:
        """The resource of the report."""
        return EPHEMERAL_REPORTS[0 if self.namespace else 1]


class Ephemerals:
    """Follows ephemeral reports; `on_change` is called with the object of each new one."""

    def __init__(
        self, client: Client, kinds: Callable[[], KindTable], *, on_change: Callable[[ObjectId], None]
    ) -> None:
        """Take the client, the kinds that the cluster serves, and a receiver of changes."""
        self.informers = tuple(Informer(client, gvr) for gvr in EPHEMERAL_REPORTS)
        self._kinds = kinds
        self._on_change = on_change
        self._places: dict[ObjectId, dict[Place, None]] = {}
        for informer in self.informers:
            informer.listen(self._take)

    def __len__(self) -> int:
        return sum(len(informer) for informer in self.informers)

    @property
    def is_synced(self) -> bool:
        """Return whether all reports have been listed."""
        return all(informer.synced.is_set() for informer in self.informers)

    def waiting(self) -> Iterator[ObjectId]:
        """Yield the objects with reports that wait."""
        yield from tuple(self._places)

    def find(self, id: ObjectId) -> tuple[Ephemeral, ...]:
        """Return the reports about an object, oldest first."""
        found = (self._read(*place) for place in self._places.get(id, ()))
        return tuple(sorted((each for each in found if each is not None), key=lambda each: (each.created, each.name)))

    def _read(self, namespace: str, name: str) -> Ephemeral | None:
        body = self.informers[0 if namespace else 1].get(name, namespace)
        if body is None:
            return None
        metadata = body["metadata"]
        results = (body.get("spec") or {}).get("results") or ()
        return Ephemeral(
            namespace,
            name,
            str(metadata.get("uid") or ""),
            _subject(body),
            _time(str(metadata.get("creationTimestamp") or "")),
            tuple(item for item in results if isinstance(item, dict)),
        )

    def _take(self, notice: Notice, body: JSONObject) -> None:
        metadata = body["metadata"]
        ref = _subject(body)
        group, resource = resource_of(ref.api_version, ref.kind, self._kinds())
        uid = str((metadata.get("labels") or {}).get(f"{_PREFIX}resource.uid") or "") or f"name:{ref.name}"
        id = ObjectId(group, resource, ref.namespace, uid)
        place = metadata.get("namespace") or "", metadata["name"]
        if notice is Notice.DELETED:
            places = self._places.get(id)
            if places is not None:
                places.pop(place, None)
                if not places:
                    del self._places[id]
            return
        self._places.setdefault(id, {})[place] = None
        self._on_change(id)


def _subject(body: JSONObject) -> ResourceRef:
    """Return the object of a report: its owner, or the object in its labels and annotations."""
    metadata = body["metadata"]
    namespace = metadata.get("namespace") or ""
    owners = metadata.get("ownerReferences") or ()
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    if owners:
        owner = owners[0]
        return ResourceRef(owner.get("apiVersion", ""), owner.get("kind", ""), namespace, owner.get("name", ""))
    api_version = join_api_version(
        labels.get(f"{_PREFIX}resource.group") or "", labels.get(f"{_PREFIX}resource.version") or ""
    )
    name = annotations.get(f"{_PREFIX}resource.name") or ""
    return ResourceRef(api_version, labels.get(f"{_PREFIX}resource.kind") or "", namespace, name)


def _time(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
