"""The EphemeralReports that wait to be merged into reports, by their object.

Those of one object are collected for a while from the first of them, so that a burst of requests is one write, and
other readers see them. A later one does not prolong that time.
"""

from __future__ import annotations

import time
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
from pyverno.report.objectmark import MARK
from pyverno.report.seals import ReportSeals
from pyverno.value import dataclass

__all__ = ["Ephemeral", "Ephemerals"]

_PREFIX: Final = "audit.kyverno.io/"
_LATE_SECONDS: Final = 900.0
"""Between results and their report: two minutes of attempts to write it, and clocks that differ."""

Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Ephemeral:
    """One ephemeral report: the object that it waits for, its place and uid, when it was made, and its results.

    Among those of one second, the resource version tells which was written first.
    """

    id: ObjectId
    namespace: str
    name: str
    uid: str
    ref: ResourceRef
    created: float
    version: int
    has_owner: bool
    results: tuple[JSONObject, ...]
    mark: str = ""
    """What the object has to fit, "" for results that no answer gave."""
    is_ours: bool = False

    @property
    def gvr(self) -> GVR:
        """The resource of the report."""
        return EPHEMERAL_REPORTS[0 if self.namespace else 1]


class Ephemerals:
    """Follows ephemeral reports; `on_change` is called with the object of each new one.

    A change of one that waits needs no call: what it holds is read when it is merged.
    """

    def __init__(
        self,
        client: Client,
        kinds: Callable[[], KindTable],
        *,
        collect_seconds: float,
        seals: ReportSeals,
        on_change: Callable[[ObjectId], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the client, the kinds that the cluster serves, for how long reports are collected, and a receiver."""
        self.informers = tuple(Informer(client, gvr) for gvr in EPHEMERAL_REPORTS)
        self._kinds = kinds
        self._collect_seconds = collect_seconds
        self._seals = seals
        self._on_change = on_change
        self._now = now
        self._places: dict[ObjectId, dict[Place, float]] = {}
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
        """Return the reports about an object that we sealed, oldest first."""
        ours = (each for each in self._all(id) if each.is_ours)
        return tuple(sorted(ours, key=lambda each: (each.created, each.version)))

    def foreign(self, id: ObjectId) -> tuple[Ephemeral, ...]:
        """Return the reports about an object that somebody else wrote, or cannot be told apart without keys."""
        return tuple(each for each in self._all(id) if not each.is_ours)

    def _all(self, id: ObjectId) -> Iterator[Ephemeral]:
        for place in tuple(self._places.get(id, ())):
            found = self._read(id, *place)
            if found is not None:
                yield found

    def seconds_left(self, id: ObjectId) -> float:
        """Return for how many seconds the reports about an object are still collected."""
        first = next(iter(self._places.get(id, {}).values()), None)
        return 0.0 if first is None else max(first + self._collect_seconds - self._now(), 0.0)

    def forget(self, report: Ephemeral) -> None:
        """Leave out a report that is merged and deleted, without waiting for the watch."""
        self._leave_out(report.id, (report.namespace, report.name))

    def _read(self, id: ObjectId, namespace: str, name: str) -> Ephemeral | None:
        body = self.informers[0 if namespace else 1].get(name, namespace)
        if body is None:
            return None
        metadata = body["metadata"]
        results = (body.get("spec") or {}).get("results") or ()
        created = _time(str(metadata.get("creationTimestamp") or ""))
        is_ours = self._seals.holds(body)  # guard: a foreign ephemeral report is not merged
        if _is_repeated(results, created):  # guard: a report that we sealed long ago is not merged again
            is_ours = False
        return Ephemeral(
            id,
            namespace,
            name,
            str(metadata.get("uid") or ""),
            _subject(body),
            created,
            _number(str(metadata.get("resourceVersion") or "")),
            bool(metadata.get("ownerReferences")),
            tuple(item for item in results if isinstance(item, dict)),
            str((metadata.get("annotations") or {}).get(MARK) or ""),
            is_ours=is_ours,
        )

    def _take(self, notice: Notice, body: JSONObject) -> None:
        metadata = body["metadata"]
        ref = _subject(body)
        group, resource = resource_of(ref.api_version, ref.kind, self._kinds())
        uid = str((metadata.get("labels") or {}).get(f"{_PREFIX}resource.uid") or "") or f"name:{ref.name}"
        id = ObjectId(group, resource, ref.namespace, uid)
        place = metadata.get("namespace") or "", metadata["name"]
        if notice is Notice.DELETED:
            self._leave_out(id, place)
            return
        places = self._places.setdefault(id, {})
        if place not in places:
            places[place] = self._now()
            self._on_change(id)

    def _leave_out(self, id: ObjectId, place: Place) -> None:
        places = self._places.get(id)
        if places is not None:
            places.pop(place, None)
            if not places:
                del self._places[id]


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


def _is_repeated(results: object, created: float) -> bool:
    """Return whether a report was created long after its results: its readers may keep it, and write it again."""
    items = results if isinstance(results, (list, tuple)) else ()
    stamps = (item.get("timestamp") for item in items if isinstance(item, dict))
    seconds = [stamp.get("seconds") for stamp in stamps if isinstance(stamp, dict)]
    return any(isinstance(each, int) and created - each > _LATE_SECONDS for each in seconds)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _time(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
