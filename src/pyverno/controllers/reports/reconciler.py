"""Writes the reports of one object: the results of the scan, and those of ephemeral reports.

The reports are written before the ephemeral ones that went into them are deleted, so that nothing is lost when the
process ends in between; doing it again changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from pyverno.cluster.client import Client
from pyverno.controllers.reports.ephemerals import Ephemeral, Ephemerals
from pyverno.controllers.reports.evaluation import Evaluation
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.objects import Entry
from pyverno.controllers.reports.reportindex import ReportIndex
from pyverno.controllers.reports.scanner import Scanner
from pyverno.controllers.reports.unreadable import UNREADABLE
from pyverno.controllers.runtime.reconcile import Again
from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo, KindTable
from pyverno.kube.reportapis import ReportApi
from pyverno.kube.status import StatusError
from pyverno.report.objectmark import fits
from pyverno.report.objectreport import ReportSubject, merge_results, reports_of, subject_of
from pyverno.report.seals import ReportSeals
from pyverno.value import dataclass, field, replace

__all__ = ["ReportReconciler"]

_NAMELESS: Final = "name:"
_YOUNG_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 5.0
_KEY_SECONDS: Final = 1.0
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_FORBIDDEN: Final = 403
_TERMINATING: Final = "because it is being terminated"
_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
_COMPARED: Final = ("scope", "summary", "results")


class Results(Protocol):
    """Results that no scan and no request gave (`unreadable.Unreadable`)."""

    def find(self, id: ObjectId) -> tuple[ResourceRef, list[JSONObject]] | None:
        """Return an object and its results."""
        ...


@dataclass(frozen=True, slots=True)
class _CollectedResults:
    """The results of an object: evaluations, ephemeral reports, results of other origin, and its reports."""

    evaluated: Sequence[tuple[Entry, Evaluation]] = ()
    waiting: Sequence[Ephemeral] = ()
    further: tuple[ResourceRef, list[JSONObject]] | None = None
    existing: Mapping[str, JSONObject] = field(default_factory=dict)
    is_ours: Callable[[JSONObject], bool] = lambda _body: False

    def subject(self, uid: str) -> ReportSubject | None:
        """Return the object as reports name it."""
        if self.evaluated:
            return ReportSubject(self.evaluated[0][1].ref, uid)
        if self.further is not None:
            return ReportSubject(self.further[0], uid)
        if self.waiting:
            return ReportSubject(self.waiting[-1].ref, uid)
        return next((found for body in self.existing.values() if (found := subject_of(body)) is not None), None)

    @property
    def results(self) -> Iterator[JSONObject]:
        """The results in the present reports."""
        return (item for body in self.existing.values() for item in body.get("results") or ())

    def kept(self) -> Callable[[JSONObject], bool]:
        """Return whether a result is one that we wrote into a present report."""
        ours = [body for body in self.existing.values() if self.is_ours(body)]  # guard: a foreign result is not kept
        written = {id(item) for body in ours for item in body.get("results") or ()}
        return lambda item: id(item) in written


class ReportReconciler:
    """Reconciles by object; `on_violations` gets the results of the scan that are new in a report."""

    def __init__(
        self,
        client: Client,
        api: ReportApi,
        scanner: Scanner,
        index: ReportIndex,
        ephemerals: Ephemerals,
        *,
        kinds: Callable[[], KindTable],
        seals: ReportSeals,
        is_current: Callable[[JSONObject], bool],
        further: Results,
        on_violations: Callable[[ResourceRef, Sequence[RuleResult]], None],
        on_unconfirmed: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Take the parts; `is_current` states whether policy and rule of a result still exist.

        `on_unconfirmed` is called for each ephemeral report that does not fit its object. Reports
        that our keys do not seal are not merged: ephemeral ones are deleted, the others are written anew.
        """
        self._client = client
        self._api = api
        self._scanner = scanner
        self._index = index
        self._ephemerals = ephemerals
        self._kinds = kinds
        self._seals = seals
        self._is_current = is_current
        self._further = further
        self._on_violations = on_violations
        self._on_unconfirmed = on_unconfirmed
        self._now = now

    async def reconcile(self, id: ObjectId) -> Again | None:
        """Write what the reports of an object should hold; raises HostError and StatusError.

        While ephemeral reports about it are collected, the object waits, so that all of them are one write.
        """
        must_wait = await self._refuse_foreign(id)
        seconds = self._ephemerals.seconds_left(id)
        if seconds:
            await self._adopt(id)
            return Again(seconds, is_pending=True)
        try:
            again = await (self._find_subject(id) if id.uid.startswith(_NAMELESS) else self._reconcile(id))
            return again or (Again(_KEY_SECONDS) if must_wait else None)
        finally:
            self._scanner.done(id)

    async def _reconcile(self, id: ObjectId) -> Again | None:
        evaluated = await self._scanner.evaluate(id)
        waiting = self._ephemerals.find(id)
        note = self._index.note(id)
        further = self._further.find(id)
        if not waiting and further is None and _is_settled(evaluated) and (note is None or note.is_settled):
            return None
        if not evaluated and further is None and not waiting and note is None:
            return None
        found = _CollectedResults(evaluated, waiting, further)
        is_new = note is None and bool(evaluated) and not any(entry.reported for entry, _ in evaluated)
        if is_new:
            is_written, again = await self._create(id, found)
            if is_written:
                return again
        names = (id.uid, *(() if note is None else note.digests))
        found = replace(found, existing=await self._existing(id, names), is_ours=self._seals.holds)
        subject = found.subject(id.uid)
        if subject is None:
            return None
        if not evaluated and further is None:
            again = await self._check_existence(id, subject, found)
            if again is not None:
                return again if again.seconds else None
        return await self._merge(id, subject, found)

    async def _create(self, id: ObjectId, found: _CollectedResults) -> tuple[bool, Again | None]:
        """Write the first report of an object, and return what is left; False where there is one already."""
        subject = found.subject(id.uid)
        if subject is None:
            return False, None
        try:
            return True, await self._merge(id, subject, found)
        except StatusError as error:
            if error.status != _CONFLICT:
                raise
            return False, None

    async def _merge(self, id: ObjectId, subject: ReportSubject, found: _CollectedResults) -> Again | None:
        """Write the reports of an object; return when ephemeral reports are looked at again that do not fit it."""
        fitting, again = await self._fitting(id, subject.ref, found)
        found = replace(found, waiting=fitting)
        seconds = int(self._now())
        evaluated, further = found.evaluated, found.further
        info = self._info(subject.ref)
        decides = self._scanner.plan.decides
        scanned = [item for _, evaluation in evaluated for item in evaluation.items(seconds)]
        if further is not None:
            scanned += [{**item, "timestamp": {"seconds": seconds, "nanos": 0}} for item in further[1]]
        items = merge_results(
            found.results,
            _first_of_each(scanned),
            (item for each in found.waiting for item in each.results),
            is_kept=found.kept(),
            is_scanned=lambda item: bool(evaluated) and info is not None and decides(item, info, id.namespace),
            is_current=lambda item: self._is_current(item) and UNREADABLE not in (item.get("properties") or {}),
        )
        reports = [self._seals.seal(each) for each in reports_of(subject, items, self._api)]
        await self._write(id, reports, found.existing)
        for entry, evaluation in evaluated:
            entry.reported = evaluation.outcome.digest
        self._index.settle(id, reports, evaluated[0][1].outcome.digest if len(evaluated) == 1 else None)
        known = {_essence(item) for item in found.results}
        for _, evaluation in evaluated:
            shown = zip(evaluation.results, evaluation.items(0), strict=True)
            new = [result for result, item in shown if _essence(item) not in known]
            if new:
                self._on_violations(evaluation.ref, new)
        for each in found.waiting:
            await self._consume(each)
        return again

    # ------------------------------------------------------------------------------------------------------ subjects

    def _info(self, ref: ResourceRef) -> KindInfo | None:
        group, version = parse_api_version(ref.api_version)
        return self._kinds().find(GVK(group, version, ref.kind))

    async def _check_existence(self, id: ObjectId, subject: ReportSubject, found: _CollectedResults) -> Again | None:
        """Check whether an object unknown to scans exists; return the remaining work if not.

        An object that may not be read is taken to exist: its owner reference lets the garbage collector decide.
        """
        waiting = found.waiting
        if not waiting and not self._scanner.is_followed(id):
            return None
        live = await self._live_uid(id, subject.ref)
        if live in (None, id.uid):
            return None
        young = [each for each in waiting if self._now() - each.created < _YOUNG_SECONDS]
        for each in waiting:
            if each not in young:
                await self._consume(each)
        if young:  # the object may be on its way: reports are made of answers
            return Again(_LOOK_SECONDS)
        await self._write(id, [], found.existing)
        self._index.settle(id, (), None)
        return Again(0)

    async def _fitting(
        self, id: ObjectId, ref: ResourceRef, found: _CollectedResults
    ) -> tuple[Sequence[Ephemeral], Again | None]:
        """Return the reports that count for the object as it is; drop the others, the young ones after another look.

        Results that a scan replaces need no look at the object.
        """
        info, decides = self._info(ref), self._scanner.plan.decides

        def counts(each: Ephemeral) -> bool:
            is_scanned = bool(found.evaluated) and info is not None
            return not (is_scanned and all(decides(item, info, id.namespace) for item in each.results if info))

        marked = [each for each in found.waiting if each.mark and counts(each)]
        if not marked:
            return found.waiting, None
        live = await self._live(id, ref)
        fitting = [each for each in found.waiting if each not in marked or (live and fits(live, each.mark))]
        again: Again | None = None
        for each in found.waiting:
            if each in fitting:  # guard: results count for the object that was judged
                continue
            if self._now() - each.created < _LOOK_SECONDS:  # the change may be on its way
                again = Again(_LOOK_SECONDS)
                continue
            await self._consume(each)
            self._on_unconfirmed()
        return fitting, again

    async def _live(self, id: ObjectId, ref: ResourceRef) -> JSONObject | None:
        """Return the object of a report, None for one that is missing or may not be read."""
        info = self._info(ref)
        if info is None:
            return None
        try:
            found = await self._client.get(info.gvr, ref.name, id.namespace)
        except StatusError as error:
            if error.status in (_NOT_FOUND, _FORBIDDEN):
                return None
            raise
        is_same = id.uid.startswith(_NAMELESS) or found["metadata"].get("uid") == id.uid
        return {"kind": info.kind, **found} if is_same else None

    async def _live_uid(self, id: ObjectId, ref: ResourceRef) -> str | None:
        """Return the uid of the object of a name, "" for a missing one, None when that is unknown."""
        info = self._info(ref)
        if info is None:
            return None
        try:
            found = await self._client.get(info.gvr, ref.name, id.namespace)
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return ""
            if error.status == _FORBIDDEN:
                return None
            raise
        return str(found["metadata"].get("uid") or "")

    async def _find_subject(self, id: ObjectId) -> Again | None:
        """Merge reports on requests whose objects had no uid yet: their names identify the objects."""
        waiting = self._ephemerals.find(id)
        if not waiting:
            return None
        uid = await self._live_uid(id, waiting[-1].ref)
        if not uid:
            if all(self._now() - each.created >= _YOUNG_SECONDS for each in waiting):
                for each in waiting:
                    await self._consume(each)
                return None
            return Again(_LOOK_SECONDS)
        real = id._replace(uid=uid)
        evaluated = await self._scanner.evaluate(real)
        existing = await self._existing(real, (uid,))
        found = _CollectedResults(evaluated, waiting, existing=existing, is_ours=self._seals.holds)
        return await self._merge(real, ReportSubject(waiting[-1].ref, uid), found)

    # -------------------------------------------------------------------------------------------------------- writes

    async def _existing(self, id: ObjectId, names: Iterable[str]) -> dict[str, JSONObject]:
        """Return the reports of an object that are ours, or have a name of ours, by name."""
        found: dict[str, JSONObject] = {}
        for name in dict.fromkeys(names):
            body = await self._read(id, name)
            if body is None:
                continue
            if name == id.uid or (body["metadata"].get("labels") or {}).get(_MANAGED_BY) == "kyverno":
                found[name] = body
        return found

    async def _read(self, id: ObjectId, name: str) -> JSONObject | None:
        try:
            return await self._client.get(self._api.resource(id.namespace), name, id.namespace)
        except StatusError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    async def _write(self, id: ObjectId, reports: Sequence[JSONObject], existing: Mapping[str, JSONObject]) -> None:
        gvr = self._api.resource(id.namespace)
        names = {body["metadata"]["name"] for body in reports}
        for body in reports:
            before = existing.get(body["metadata"]["name"])
            try:
                if before is None:
                    await self._client.submit(gvr, body, id.namespace)
                elif not (_is_same(before, body) and (self._seals.holds(before) or not self._seals.can_check)):
                    await self._client.update(gvr, _update(before, body), id.namespace)
            except StatusError as error:
                if not _is_ending(error, before):
                    raise
        for name in existing.keys() - names:
            await self._delete(id, name)

    async def _delete(self, id: ObjectId, name: str) -> None:
        try:
            await self._client.discard(self._api.resource(id.namespace), name, id.namespace)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise

    async def _adopt(self, id: ObjectId) -> None:
        """Make an object that scans follow the owner of the first report that is collected about it.

        COMPAT: Kyverno does so with each report, and readers find the object by it. One write for each burst is enough.
        """
        waiting = self._ephemerals.find(id)
        if not waiting or waiting[0].has_owner or not any(self._scanner.find(id)):
            return
        first = waiting[0]
        owner = {"apiVersion": first.ref.api_version, "kind": first.ref.kind, "name": first.ref.name, "uid": id.uid}
        body = {"metadata": {"uid": first.uid, "ownerReferences": [owner]}}
        try:
            await self._client.patch(first.gvr, first.name, body, first.namespace)
        except StatusError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT, _FORBIDDEN):
                raise

    async def _refuse_foreign(self, id: ObjectId) -> bool:
        """Delete ephemeral reports that no controller wrote; return whether some wait for the keys to check them by."""
        foreign = self._ephemerals.foreign(id)
        if not self._seals.can_check:
            return bool(foreign)
        for each in foreign:
            await self._consume(each)
        return False

    async def _consume(self, each: Ephemeral) -> None:
        """Delete an ephemeral report that is merged; a newer one of the same name stays."""
        options = {"preconditions": {"uid": each.uid}} if each.uid else None
        try:
            await self._client.discard(each.gvr, each.name, each.namespace, options=options)
        except StatusError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise
        self._ephemerals.forget(each)


def _is_settled(evaluated: Sequence[tuple[Entry, Evaluation]]) -> bool:
    return all(entry.reported == evaluation.outcome.digest for entry, evaluation in evaluated)


def _first_of_each(items: Sequence[JSONObject]) -> list[JSONObject]:
    """Return results without those that a second version of the object gave as well."""
    found: dict[str, JSONObject] = {}
    for item in items:
        found.setdefault(_essence(item), item)
    return list(found.values())


def _essence(item: JSONObject) -> str:
    return repr(sorted((key, repr(value)) for key, value in item.items() if key != "timestamp"))


def _is_same(before: JSONObject, body: JSONObject) -> bool:
    owners = (before["metadata"].get("ownerReferences") or [{}])[0]
    has_owner = owners.get("uid") == body["metadata"]["ownerReferences"][0]["uid"]
    return has_owner and all(before.get(name) == body[name] for name in _COMPARED)


def _update(before: JSONObject, body: JSONObject) -> JSONObject:
    """Return a report with the metadata that others gave it."""
    old, new = before["metadata"], body["metadata"]
    merged = {name: {**(old.get(name) or {}), **(new.get(name) or {})} for name in ("labels", "annotations")}
    return {**body, "metadata": {**old, **new, **{name: found for name, found in merged.items() if found}}}


def _is_ending(error: StatusError, before: JSONObject | None) -> bool:
    """Return whether a report cannot be written because its namespace, or the report itself, goes."""
    if error.status == _FORBIDDEN and _TERMINATING in error.message:
        return True
    return error.status == _NOT_FOUND and before is None
