"""The reports controller: watches that feed it, and the reports that one of its replicas writes.

It puts the parts together and keeps them running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from pyverno.cluster.access import Access
from pyverno.controllers.reports.settings import ReportsSettings
from pyverno.controllers.reports.work import ReportsWork, WorkContext
from pyverno.controllers.rights.reads import author_reads
from pyverno.controllers.runtime.leader import Leader
from pyverno.controllers.state.foundation import Foundation
from pyverno.errors import UsageError
from pyverno.kube.gvk import GVR
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS, ReportApi
from pyverno.report.ephemeral import EPHEMERAL_REPORTS
from pyverno.report.seals import ReportSeals
from pyverno.telemetry.catalog import METRICS
from pyverno.telemetry.metrics import Metrics

__all__ = ["ReportsController", "ReportsSettings"]

_LEASE: Final = "kyverno-reports-controller"


class ReportsController:
    """Runs until it is stopped, or until one of its parts ends by itself."""

    def __init__(self, access: Access, settings: ReportsSettings, metrics: Metrics | None = None) -> None:
        """Take the access to the cluster, the settings, and the metrics to count in."""
        self._settings = settings
        self._foundation = foundation = Foundation(access, settings, metrics, reads=author_reads)
        self._state = foundation.state
        self.metrics = metrics = foundation.metrics
        self._work: ReportsWork | None = None
        self._leader = Leader(
            foundation.election(_LEASE),
            (_Term(self),),
            retry_seconds=settings.lease_retry,
        )
        metrics.instruments.gauge(METRICS["kyverno_scan_unreadable_resources"], self._read_unreadable)
        metrics.instruments.gauge(METRICS["kyverno_scan_queue_age_seconds"], self._read_queue_age)
        metrics.instruments.gauge(METRICS["kyverno_scan_duration_seconds"], self._read_duration)
        metrics.instruments.gauge(METRICS["kyverno_scan_objects"], self._read_objects)
        metrics.instruments.gauge(METRICS["kyverno_scan_events_held_back"], self._read_held_back)

    @property
    def is_idle(self) -> bool:
        """Return whether this replica leads and all reports are as they should be."""
        return self._work is not None and self._work.is_settled

    def problem(self) -> str:
        """Return which cache is not there yet or stale; the empty text when none is."""
        return self._state.problem()

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop` is set, end in order.

        Raises UsageError when the cluster lacks a definition, HostError when it cannot be reached at the start or when
        a part ends by itself.
        """
        foundation = self._foundation
        try:
            await foundation.begin()
            self._check_definitions()
            await foundation.hosts.record_keys.look()
            leading = foundation.parts.start(self._leader.campaign())
            foundation.parts.start(foundation.hosts.record_keys.follow())
            foundation.follow()
            await foundation.parts.wait(stop)
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
            await self._leader.release()
        finally:
            await foundation.end()
        foundation.parts.check()

    async def lead(self) -> None:
        """Do the work of a leader until cancelled."""
        work = ReportsWork(
            WorkContext(
                self._foundation.client,
                self._settings,
                self._state,
                self._api(),
                self._foundation.hosts.host,
                self._foundation.emit,
                self.metrics,
                ReportSeals(lambda: self._foundation.hosts.record_keys.keys),
                self._replaced(),
            )
        )
        self._work = work
        try:
            await work.run()
        finally:
            self._work = None

    def _api(self) -> ReportApi:
        """Return the API of reports: OpenReports if the flag is set, or if only it is served."""
        if self._settings.uses_openreports or not self._serves(POLICY_REPORTS):
            return OPENREPORTS if self._serves(OPENREPORTS) or self._settings.uses_openreports else POLICY_REPORTS
        return POLICY_REPORTS

    def _replaced(self) -> tuple[GVR, ...]:
        """Return the resources of PolicyReports if the flag replaces them by OpenReports. (Kyverno: kyverno-init)"""
        is_replaced = self._settings.uses_openreports and self._serves(POLICY_REPORTS)
        return (POLICY_REPORTS.namespaced, POLICY_REPORTS.cluster) if is_replaced else ()

    def _serves(self, api: ReportApi) -> bool:
        return all(self._state.kinds.by_resource(gvr) is not None for gvr in (api.namespaced, api.cluster))

    def _check_definitions(self) -> None:
        if not self._settings.checks_definitions:
            return
        needed = list(EPHEMERAL_REPORTS) if self._settings.aggregates else []
        api = self._api()
        needed += [api.namespaced, api.cluster]
        missing = [f"{gvr.resource}.{gvr.group}" for gvr in needed if self._state.kinds.by_resource(gvr) is None]
        if missing:
            raise UsageError(
                f"the cluster does not serve {', '.join(missing)}: "
                "install the definitions with `pyverno install --dry-run | kubectl apply --server-side -f -`"
            )

    def _read_unreadable(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if self._work is not None:
            yield from self._work.unreadable.readings()

    def _read_queue_age(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if self._work is not None:
            yield (), self._work.scanner.queue_age

    def _read_duration(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if self._work is not None:
            yield (), self._work.scanner.seconds

    def _read_objects(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if self._work is not None:
            yield (), self._work.scanner.store.count

    def _read_held_back(self) -> Iterator[tuple[tuple[str, ...], float]]:
        if self._work is not None:
            yield (), self._work.violations.held_back


class _Term:
    """The work of a leader as what a lease runs."""

    def __init__(self, controller: ReportsController) -> None:
        self._controller = controller

    async def run(self) -> None:
        """Work until cancelled."""
        await self._controller.lead()
