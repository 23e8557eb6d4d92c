"""Work after a response: reports, UpdateRequests, and deferred audit-only policies.

An `Observer` of the webhook server that assembles the parts; it never delays a response.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyverno.cluster.client import Client
from pyverno.controllers.admission.auditpass import AuditPass, AuditSettings
from pyverno.controllers.admission.reports import AdmissionReports, ReportSettings
from pyverno.controllers.admission.updaterequestwriter import UpdateRequestSettings, UpdateRequestWriter
from pyverno.controllers.runtime.events import Event, Events
from pyverno.controllers.state.clusterstate import ClusterState
from pyverno.engine.host import Host
from pyverno.engine.result import ResourceRef
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.telemetry.observer import AdmissionOutcome, Observer, Observers
from pyverno.value import dataclass

if TYPE_CHECKING:
    from pyverno.report.seals import ReportSeals
from pyverno.telemetry.metrics import Metrics

__all__ = ["Followup", "FollowupSettings"]

_WORK: Final = "update-requests"
_AUDIT: Final = "audit"

log = logging.getLogger("pyverno.followup")


@dataclass(frozen=True, slots=True)
class FollowupSettings:
    """Settings of the work after a response: reports, UpdateRequests, and policies evaluated afterwards."""

    reports: ReportSettings
    updates: UpdateRequestSettings
    audit: AuditSettings


class Followup:
    """Queues the work of each response; `run` performs it, `flush` finishes it at shutdown."""

    def __init__(
        self,
        client: Client,
        settings: FollowupSettings,
        cluster: ClusterState,
        events: Events,
        *observers: Observer,
        host: Callable[[], Host],
        seals: ReportSeals,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the client, the settings, the cluster state, the writer of events, the source of hosts, and seals.

        `observers` are further observers of policies evaluated after the response.
        """
        self._events = events
        self._metrics = metrics
        self._reports = AdmissionReports(
            client,
            settings.reports,
            kinds=lambda: cluster.kinds,
            version_of=cluster.store.version_of,
            seals=seals,
            metrics=metrics,
        )
        self._writer = UpdateRequestWriter(
            client,
            cluster,
            settings.updates,
            host=host,
            lost=self._report_lost,
            unconfirmed=self._count_unconfirmed,
        )
        self._audit = AuditPass(
            settings.audit,
            host=host,
            observer=Observers(*observers, self._events, self._reports),
            lost=self._count_unaudited,
        )
        self._observers = Observers(self._reports, self._writer, self._audit)

    @property
    def is_idle(self) -> bool:
        """Return whether no work is left."""
        return self._audit.is_idle and self._reports.is_idle and self._writer.is_idle

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the work of one response."""
        self._observers.answered(admission_request, path, outcome, seconds)

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: a request that failed causes no work."""

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._audit.run())
            group.create_task(self._reports.run())
            group.create_task(self._writer.run())

    async def flush(self, seconds: float) -> None:
        """Finish the queued work within `seconds`; report the rest as lost."""
        end = time.monotonic() + seconds
        await self._writer.flush(seconds)
        await self._audit.flush(max(end - time.monotonic(), 0.1))
        await self._reports.flush(max(end - time.monotonic(), 0.1))

    def _count_unaudited(self) -> None:
        if self._metrics is not None:
            self._metrics.gave_up(_AUDIT)

    def _count_unconfirmed(self, work: str) -> None:
        if self._metrics is not None:
            self._metrics.left_unconfirmed(work)

    def _report_lost(self, policy: ResourceRef | None, reason: str, subject: ResourceRef) -> None:
        if self._metrics is not None:
            self._metrics.gave_up(_WORK)
        fields = {"policy": str(policy or ""), "resource": str(subject), "error": reason}
        log.error("an UpdateRequest for a request could not be created", extra={"fields": fields})
        if policy is not None:
            self._events.emit(Event.of_error(policy, reason, subject))
