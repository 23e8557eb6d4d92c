"""The work of the leader of the reports controllers in one term: scan, collect, write.

A term begins with no state in memory and keeps none at its end: all of it is in the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from pyverno.cluster.client import METADATA_LIST, Client
from pyverno.controllers.reports.admissionpolicies import AdmissionPolicies
from pyverno.controllers.reports.currency import Currency
from pyverno.controllers.reports.ephemerals import Ephemerals
from pyverno.controllers.reports.identity import ObjectId
from pyverno.controllers.reports.plan import make_plan
from pyverno.controllers.reports.reconciler import ReportReconciler
from pyverno.controllers.reports.reportindex import OURS, ReportIndex
from pyverno.controllers.reports.scanner import ScanCallbacks, Scanner
from pyverno.controllers.reports.settings import ReportsSettings
from pyverno.controllers.reports.unreadable import Unreadable
from pyverno.controllers.reports.violations import Violations
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.runtime.reconcile import Controller, LoopSettings
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.engine.host import Host
from pyverno.engine.result import RuleResult
from pyverno.errors import HostError
from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.kinds import KindTable
from pyverno.kube.reportapis import ReportApi
from pyverno.kube.status import StatusError
from pyverno.report.seals import ReportSeals
from pyverno.telemetry.metrics import Metrics
from pyverno.value import dataclass, replace

__all__ = ["ReportsWork", "WorkContext"]

_SETTLE_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.05
_REPORTS: Final = "reports"
_MAX_DEPTH: Final = 200_000
_RETRY_SECONDS: Final = 5.0
_LONGEST_RETRY_SECONDS: Final = 300.0
_NOT_FOUND: Final = 404

log = logging.getLogger("pyverno.reports")


@dataclass(frozen=True, slots=True)
class WorkContext:
    """The cluster, its state, the API that reports are written in, and where events and metrics go.

    Our reports of the resources in `replaced` are deleted.
    """

    client: Client
    settings: ReportsSettings
    state: ClusterState
    api: ReportApi
    host: Callable[[], Host]
    emit: Callable[[Event], None]
    metrics: Metrics
    seals: ReportSeals
    replaced: tuple[GVR, ...] = ()


class ReportsWork:
    """Works while `run` runs; made anew for each term."""

    def __init__(self, context: WorkContext) -> None:
        """Put the parts together."""
        self._context = context
        settings, state, client = context.settings, context.state, context.client
        self._changed = asyncio.Event()
        self._kinds: KindTable | None = None
        self._plans = 0
        self.admission = AdmissionPolicies(
            client, self._changed.set, validating=settings.validating, mutating=settings.mutating
        )
        self.violations = Violations(context.emit)
        self.unreadable = Unreadable(
            lambda: state.kinds, state.store.uid_of, notify=context.emit, on_change=self._look_again
        )
        scan = replace(settings.scan, takes=self._takes)
        self.scanner = Scanner(
            client,
            scan,
            ScanCallbacks(context.host, self._add_scanned, self.unreadable.note, self._note_evaluated),
        )
        self._index = ReportIndex(
            client,
            context.api,
            lambda: state.kinds,
            match_scan=self.scanner.is_report_of_scan,
            seals=context.seals,
            on_change=self._add,
            on_list=self.scanner.check_listed,
        )
        self._ephemerals = Ephemerals(
            client,
            lambda: state.kinds,
            collect_seconds=settings.collect_seconds,
            seals=context.seals,
            on_change=self._add_collected,
        )
        self._currency = Currency(state.store.compiled, self.admission)
        self._reconciler = ReportReconciler(
            client,
            context.api,
            self.scanner,
            self._index,
            self._ephemerals,
            kinds=lambda: state.kinds,
            seals=context.seals,
            is_current=self._currency.is_current,
            further=self.unreadable,
            on_violations=self.violations.note,
            on_unconfirmed=lambda: context.metrics.left_unconfirmed(_REPORTS),
        )
        self._controller: Controller[ObjectId] = Controller(
            "reports-controller",
            self._reconciler.reconcile,
            keys=self._waiting,
            settings=LoopSettings(
                workers=settings.workers,
                settle_seconds=settings.settle_seconds,
                max_depth=_MAX_DEPTH,
                backoff=settings.backoff,
            ),
            metrics=context.metrics,
        )

    @property
    def is_settled(self) -> bool:
        """Return whether all reports are as they should be, as far as the watches have brought what changed."""
        return (
            self._plans > 0
            and not self._changed.is_set()
            and self._context.state.is_settled
            and (self.scanner.is_settled or not self._context.settings.scans)
            and self._controller.is_idle
        )

    async def run(self) -> None:
        """Work until cancelled."""
        settings, state = self._context.settings, self._context.state
        state.listen(self._changed.set)
        self._changed.set()
        async with asyncio.TaskGroup() as group:
            self.admission.follow(state.kinds, group)
            for feed in self._index.feeds:
                group.create_task(feed.run())
            if settings.aggregates:
                for informer in self._ephemerals.informers:
                    group.create_task(informer.run())
            for gvr in self._context.replaced:
                group.create_task(self._delete_reports(gvr))
            await self._wait_until_synced()
            if settings.scans:
                group.create_task(self.scanner.run())
            group.create_task(self._follow_policies(group))
            if settings.stores:
                await self._wait_for_plan()
                group.create_task(self._controller.run())

    async def _wait_until_synced(self) -> None:
        """Wait for reports and policies: what is not known yet must not look like deleted."""
        aggregates = self._context.settings.aggregates
        while not (
            self._index.is_synced and self.admission.is_synced and (self._ephemerals.is_synced or not aggregates)
        ):
            await asyncio.sleep(_POLL_SECONDS)

    async def _delete_reports(self, gvr: GVR) -> None:
        """Delete our reports of a resource; repeated until the API server has deleted all, or does not serve it."""
        client, pause = self._context.client, _RETRY_SECONDS
        while True:
            try:
                listed = await client.list(gvr, query={"labelSelector": OURS}, accept=METADATA_LIST)
                for each in listed["items"]:
                    metadata = each["metadata"]
                    await _discard(client, gvr, metadata["name"], metadata.get("namespace") or "")
                return
            except (HostError, StatusError) as error:
                if isinstance(error, StatusError) and error.status == _NOT_FOUND:
                    return
                fields = {"resource": f"{gvr.resource}.{gvr.group}", "error": error.message}
                log.warning("reports that others replace could not be deleted", extra={"fields": fields})
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY_SECONDS)

    async def _wait_for_plan(self) -> None:
        while not self._plans:
            await asyncio.sleep(_POLL_SECONDS)

    async def _follow_policies(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(_SETTLE_SECONDS)
            self._changed.clear()
            state = self._context.state
            self.admission.follow(state.kinds, group)
            policies = (*state.policies.all.policies, *self.admission.policies())
            plan = make_plan(policies, state.policies.all.exceptions, state.kinds)
            if self._context.settings.scans:
                if self._kinds is not None and self._kinds is not state.kinds:
                    self.scanner.forget_results()
                self._kinds = state.kinds
                self.scanner.follow_settings(state.configuration.evaluation)
                self.scanner.follow(plan)
                self.unreadable.follow(plan)
            self._index.reopen(self._currency.follow())
            self._plans += 1
            for id in self._index.unsettled():
                self._add(id)

    def _waiting(self) -> Sequence[ObjectId]:
        known = (self._index.unsettled(), self._ephemerals.waiting(), self.scanner.pending, self.unreadable.waiting())
        return tuple(dict.fromkeys(id for ids in known for id in ids))

    def _add(self, id: ObjectId) -> None:
        self._controller.add(id)

    def _add_scanned(self, id: ObjectId, has_changed: bool) -> None:
        """Add an object; one that changed does not wait for those of a sweep."""
        self._controller.add(id, is_urgent=has_changed)

    def _add_collected(self, id: ObjectId) -> None:
        """Add an object when its ephemeral reports have been collected."""
        self._controller.add(id, after=self._context.settings.collect_seconds)

    def _look_again(self, id: ObjectId) -> None:
        self._index.unsettle(id)
        self._controller.add(id)

    def _takes(self, kind: GVK, namespace: str, name: str) -> bool:
        """Return whether an object is scanned; filters of the ConfigMap apply only when the flag enables them."""
        if self._context.settings.skips_filters:
            return True
        filters = self._context.state.configuration.filters_of(kind, "")
        return not any(each.takes(kind, namespace, name) for each in filters)

    def _note_evaluated(self, results: Sequence[RuleResult], kind: GVK, namespace: str, seconds: float) -> None:
        self._context.metrics.scanned(results, kind.kind, namespace, seconds)


async def _discard(client: Client, gvr: GVR, name: str, namespace: str) -> None:
    try:
        await client.discard(gvr, name, namespace)
    except StatusError as error:
        if error.status != _NOT_FOUND:
            raise
