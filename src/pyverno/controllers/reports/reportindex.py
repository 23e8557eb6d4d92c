"""The reports in the cluster, as far as they must be remembered: digests of their results, not the results.

Reports that equal the results of the scan are remembered in the entry of their object. The others are remembered
here: those with results of admission requests, of objects that are not scanned, and those that others changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from pyverno.cluster.client import Client
from pyverno.controllers.reports.feed import Feed
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.objects import pack_uid
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.reportapis import ReportApi
from pyverno.report.objectreport import results_digest, subject_of
from pyverno.report.seals import ReportSeals
from pyverno.value import dataclass, field

__all__ = ["OURS", "Listed", "NoteKey", "PolicyName", "ReportIndex", "ReportNote", "resource_of"]

PolicyName = tuple[str, str]
"""Source and key of a policy."""

Listed = Mapping[str, AbstractSet[bytes]]
"""Packed uids by namespace."""

NoteKey = tuple[str, bytes]
"""Namespace and packed uid: who may write reports in a namespace could name the uid of an object in another one."""

OURS: Final = "app.kubernetes.io/managed-by=kyverno"
"""The label selector of reports that this controller may change."""


@dataclass(slots=True)
class ReportNote:
    """The reports of one object: digests by name, the policies in them, and whether they are as they should be."""

    id: ObjectId
    digests: dict[str, bytes] = field(default_factory=dict)
    policies: frozenset[PolicyName] = frozenset()
    is_settled: bool = False


def resource_of(api_version: str, kind: str, kinds: KindTable) -> tuple[str, str]:
    """Return group and resource of a kind; of one that is not served any more, its name in lower case."""
    group, version = parse_api_version(api_version)
    info = kinds.find(GVK(group, version, kind))
    info = info or next((each for each in kinds.by_kind(kind) if each.group == group), None)
    return group, kind.lower() if info is None else info.plural


def _key(id: ObjectId) -> NoteKey:
    return id.namespace, pack_uid(id.uid)


class ReportIndex:
    """A sink of the feeds of reports; `on_change` is called with the object of a report that others changed.

    `scanned` returns the digest that the scan has for an object and whether it has one, and takes notice of the digest
    of its report.
    """

    def __init__(
        self,
        client: Client,
        api: ReportApi,
        kinds: Callable[[], KindTable],
        *,
        match_scan: Callable[[ObjectId, bytes], bool],
        seals: ReportSeals,
        on_change: Callable[[ObjectId], None],
        on_list: Callable[[GVR, Listed], None],
    ) -> None:
        """Take the client, the API of reports, what compares a digest with that of the scan, and seals.

        `on_list` is called after a list of all reports of a resource with the packed uids of their objects, by
        namespace.
        """
        self.notes: dict[NoteKey, ReportNote] = {}
        self.feeds = tuple(Feed(client, gvr, self, selector=OURS) for gvr in (api.namespaced, api.cluster))
        self._kinds = kinds
        self._match_scan = match_scan
        self._seals = seals
        self._on_change = on_change
        self._on_list = on_list
        self._listing: dict[GVR, dict[str, set[bytes]]] = {}
        self._is_cluster = {api.namespaced: False, api.cluster: True}
        self._names: dict[frozenset[PolicyName], frozenset[PolicyName]] = {}

    @property
    def is_synced(self) -> bool:
        """Return whether all reports have been listed."""
        return all(feed.synced.is_set() for feed in self.feeds)

    def note(self, id: ObjectId) -> ReportNote | None:
        """Return the notes on the reports of an object."""
        return self.notes.get(_key(id))

    def unsettled(self) -> Iterator[ObjectId]:
        """Yield the objects whose reports have to be looked at."""
        yield from [note.id for note in self.notes.values() if not note.is_settled]

    def reopen(self, policies: Iterable[PolicyName]) -> bool:
        """Mark reports with results of changed policies for another check; return whether any exist."""
        changed = frozenset(policies)
        found = [note for note in self.notes.values() if not changed.isdisjoint(note.policies)]
        for note in found:
            note.is_settled = False
        return bool(found)

    def unsettle(self, id: ObjectId) -> None:
        """Have the reports of an object looked at again."""
        note = self.note(id)
        if note is not None:
            note.is_settled = False

    def settle(self, id: ObjectId, reports: Iterable[JSONObject], scanned: bytes | None) -> None:
        """Note the reports of an object as just written; `scanned` is the digest of the scan if it is scanned."""
        bodies = list(reports)
        digests = {body["metadata"]["name"]: results_digest(body["results"]) for body in bodies}
        key = _key(id)
        if not digests or (scanned is not None and digests == {id.uid: scanned}):
            self.notes.pop(key, None)
        else:
            self.notes[key] = ReportNote(id, digests, self._policies(bodies), is_settled=True)

    # --------------------------------------------------------------------------------------------------------- sink

    def begin(self, gvr: GVR) -> None:
        """Begin to note which objects have reports."""
        self._listing[gvr] = {}

    def end(self, gvr: GVR) -> None:
        """Forget reports that are not there any more."""
        listed = self._listing.pop(gvr)
        gone = [
            key
            for key, note in self.notes.items()
            if key[1] not in listed.get(key[0], ()) and (not note.id.namespace) == self._is_cluster[gvr]
        ]
        for key in gone:
            self._on_change(self.notes.pop(key).id)
        self._on_list(gvr, listed)

    def put(self, gvr: GVR, body: JSONObject) -> None:
        """Take a report that is new or was changed, by us or by others."""
        subject = subject_of(body)
        if subject is None:
            return
        group, resource = resource_of(subject.ref.api_version, subject.ref.kind, self._kinds())
        id = ObjectId(group, resource, subject.ref.namespace, subject.uid)
        name, digest = body["metadata"]["name"], results_digest(body.get("results") or ())
        if self._seals.can_check and not self._seals.holds(body):
            digest = b"?"
        key = _key(id)
        if gvr in self._listing:
            self._listing[gvr].setdefault(key[0], set()).add(key[1])
        note = self.notes.get(key)
        if note is not None and note.digests.get(name) == digest:
            return
        if note is None and name == id.uid and self._match_scan(id, digest):
            return
        digests = {**(note.digests if note is not None else {}), name: digest}
        policies = self._policies([body]) | (note.policies if note is not None else frozenset())
        self.notes[key] = ReportNote(id, digests, policies)
        self._on_change(id)

    def remove(self, gvr: GVR, body: JSONObject) -> None:
        """Handle the deletion of a report; it is written again if its object still exists."""
        subject = subject_of(body)
        if subject is None:
            return
        group, resource = resource_of(subject.ref.api_version, subject.ref.kind, self._kinds())
        id = ObjectId(group, resource, subject.ref.namespace, subject.uid)
        key = _key(id)
        note = self.notes.get(key)
        if note is not None:
            note.digests.pop(body["metadata"]["name"], None)
            if not note.digests:
                del self.notes[key]
        if not self._match_scan(id, b""):
            self._on_change(id)

    def _policies(self, bodies: Iterable[JSONObject]) -> frozenset[PolicyName]:
        found = frozenset(
            (str(item.get("source") or ""), str(item.get("policy") or ""))
            for body in bodies
            for item in body.get("results") or ()
            if isinstance(item, dict)
        )
        return self._names.setdefault(found, found)
