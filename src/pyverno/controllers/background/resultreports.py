"""Reports on work in the background: the results of rules for their triggers, as EphemeralReports.

Work never waits for its report: results are queued and written later. Reports that exceed the queue or the limit on
existing reports are dropped, counted and logged. The reports controller aggregates them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyverno.cluster.client import Client
from pyverno.controllers.runtime.circuitbreaker import CircuitBreaker
from pyverno.controllers.runtime.objectcount import ObjectCount
from pyverno.controllers.runtime.outbox import Outbox
from pyverno.engine.origin import uid_of
from pyverno.engine.request import Request
from pyverno.engine.result import ResourceRef, RuleResult, RuleType
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.report.ephemeral import EPHEMERAL_REPORTS, Reported, background_report
from pyverno.report.seals import ReportSeals
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.telemetry.metrics import Metrics

__all__ = ["ResultReportSettings", "ResultReports"]

_NAME: Final = "background-reports"
_ADMISSION: Final = "audit.kyverno.io/source=admission"
_NOT_REPORTED: Final = "reports.kyverno.io/disabled"
_EVENT_GROUPS: Final = ("", "events.k8s.io")
_TYPES: Final = {RuleType.GENERATION: "generate", RuleType.MUTATION: "mutateExisting"}
_GONE: Final = (403, 404)

log = logging.getLogger("pyverno.reports")


@dataclass(frozen=True, slots=True)
class ResultReportSettings:
    """The results to report: these kinds of rules with these results.

    `max_reports` bounds the reports in the cluster, `max_waiting` the queue.
    """

    types: frozenset[str] = field(
        default_factory=lambda: frozenset({"validate", "mutate", "mutateExisting", "generate", "imageVerify"})
    )
    statuses: frozenset[str] = field(default_factory=lambda: frozenset({"pass", "fail", "error", "warn", "skip"}))
    max_reports: int = 10_000
    max_waiting: int = 1000


@dataclass(frozen=True, slots=True)
class _Noted:
    """Results for one trigger."""

    about: Reported
    results: tuple[RuleResult, ...]
    seconds: int


class ResultReports:
    """Queues reports and writes them while `run` runs."""

    def __init__(
        self,
        client: Client,
        settings: ResultReportSettings,
        *,
        kinds: Callable[[], KindTable],
        version_of: Callable[[PolicyInfo], str],
        seals: ReportSeals,
        metrics: Metrics | None = None,
    ) -> None:
        """Take the client, the settings, the served kinds, and a lookup of policies' versions ("" = unknown).

        Reports without a seal are not merged.
        """
        self._seals = seals
        self._client = client
        self._settings = settings
        self._kinds = kinds
        self._version_of = version_of
        self._metrics = metrics
        self._count = ObjectCount(client, EPHEMERAL_REPORTS, selector=_ADMISSION)
        self._breaker = CircuitBreaker(
            "background reports", lambda: self._count.value, max_count=settings.max_reports, on_check=self._check
        )
        self._outbox = Outbox(self._write, on_lost=self._lose, max_items=settings.max_waiting)

    @property
    def is_idle(self) -> bool:
        """Return whether no report is waiting."""
        return not len(self._outbox)

    def note(self, request: Request, results: Sequence[RuleResult]) -> None:
        """Queue the report on what rules did for the object of a request; one that is deleted has none."""
        if request.object is None:
            return
        kept = tuple(result for result in results if self._is_reported(result))
        ref, uid = ResourceRef.of(request.subject), uid_of(request.subject)
        is_event = request.gvk.kind == "Event" and request.gvk.group in _EVENT_GROUPS
        if not kept or not ref.name or not uid or is_event or request.gvr is None or not self._has_kinds():
            return
        about = Reported(ref, uid, request.gvk, request.gvr, uid)
        self._outbox.put(_Noted(about, kept, int(time.time())))

    async def run(self) -> None:
        """Write until cancelled."""
        if not self._settings.types & set(_TYPES.values()) or not self._has_kinds():
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._count.run())
            group.create_task(self._outbox.run())

    def _is_reported(self, result: RuleResult) -> bool:
        return (
            _TYPES.get(result.rule.type) in self._settings.types
            and result.status.value in self._settings.statuses
            and _NOT_REPORTED not in result.rule.policy.labels
        )

    def _has_kinds(self) -> bool:
        kinds = self._kinds()
        return all(kinds.by_resource(gvr) is not None for gvr in EPHEMERAL_REPORTS)

    async def _write(self, noted: _Noted) -> None:
        if not self._breaker.passes():
            return
        about = noted.about
        body = self._seals.seal(
            background_report(about.resource, about.uid, noted.results, noted.seconds, version_of=self._version_of)
        )
        namespace = noted.about.resource.namespace
        try:
            await self._client.submit(EPHEMERAL_REPORTS[0 if namespace else 1], body, namespace)
        except StatusError as error:
            if error.status not in _GONE:  # else the reported object is deleted with its namespace
                raise

    def _check(self, name: str, is_open: bool) -> None:
        if self._metrics is not None:
            self._metrics.count_breaker_call(name, is_open=is_open)

    def _lose(self, noted: _Noted, reason: str) -> None:
        """Count and log a dropped report."""
        if self._metrics is not None:
            self._metrics.gave_up(_NAME)
        fields = {"resource": str(noted.about.resource), "error": reason}
        log.error("a report on work in the background could not be written", extra={"fields": fields})
