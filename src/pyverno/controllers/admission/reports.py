"""Reports on admission requests: the results of rules for admitted objects, as EphemeralReports.

A response never waits for its report: results are queued when it is sent, and written later. Reports that exceed the
queue or the limit on existing reports are dropped, counted and logged. The reports controller aggregates them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pyverno.cluster.client import Client
from pyverno.controllers.runtime.circuitbreaker import CircuitBreaker
from pyverno.controllers.runtime.objectcount import ObjectCount
from pyverno.controllers.runtime.outbox import Outbox
from pyverno.engine.engine import Review
from pyverno.engine.result import FailureAction, ResourceRef, RuleResult, RuleType, Status
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.kube.kinds import KindTable
from pyverno.kube.status import StatusError
from pyverno.policy.kinds import RULE_KINDS
from pyverno.report.ephemeral import EPHEMERAL_REPORTS, REPORT_GROUP, Reported, ReportParts, admission_report
from pyverno.report.objectmark import mark_of
from pyverno.report.seals import ReportSeals
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.telemetry.metrics import Metrics

__all__ = ["AdmissionReports", "ReportSettings"]

_NAME: Final = "admission-reports"
_ADMISSION: Final = "audit.kyverno.io/source=admission"
_NOT_REPORTED: Final = "reports.kyverno.io/disabled"
_EVENT_GROUPS: Final = ("", "events.k8s.io")
_TYPES: Final = {
    RuleType.VALIDATION: "validate",
    RuleType.MUTATION: "mutate",
    RuleType.IMAGE_VERIFY: "imageVerify",
}
_MAX_KNOWN: Final = 128
_TERMINATING: Final = "because it is being terminated"

log = logging.getLogger("pyverno.reports")


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """The results to report: nothing without `of_admission`, otherwise these kinds of rules with these results.

    `most` bounds the reports on admission requests in the cluster, `max_waiting` the queue.
    """

    of_admission: bool = True
    types: frozenset[str] = field(
        default_factory=lambda: frozenset({"validate", "mutate", "mutateExisting", "generate", "imageVerify"})
    )
    statuses: frozenset[str] = field(default_factory=lambda: frozenset({"pass", "fail", "error", "warn", "skip"}))
    most: int = 10_000
    max_waiting: int = 1000


@dataclass(slots=True)
class _Noted:
    """The unreported results of one response; `left` holds those of each report that is not written yet.

    They are grouped when they are written, because responses arrive faster than reports can be written.
    """

    admission_request: AdmissionRequest
    review: Review
    seconds: int
    source: str = ""
    about: Reported | None = None
    left: list[ReportParts] | None = None


class AdmissionReports:
    """Queues reports (an `Observer` of the webhook server) and writes them while `run` runs."""

    def __init__(
        self,
        client: Client,
        settings: ReportSettings,
        *,
        kinds: Callable[[], KindTable],
        version_of: Callable[[PolicyInfo], str],
        seals: ReportSeals,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the client, the settings, the served kinds, and a lookup of policies' versions ("" = unknown).

        Reports without a seal are not merged.
        """
        self._seals = seals
        self._metrics = metrics
        self._client = client
        self._settings = settings
        self._kinds = kinds
        self._version_of = version_of
        self._clock = clock
        self._count = ObjectCount(client, EPHEMERAL_REPORTS, selector=_ADMISSION)
        self._breaker = CircuitBreaker(
            "admission reports", lambda: self._count.value, max_count=settings.most, on_check=self._count_breaker
        )
        self._outbox = Outbox(
            self._write,
            on_lost=self._lose,
            max_items=settings.max_waiting,
            weigh=lambda noted: noted.admission_request.size,
            source_of=lambda noted: noted.source,
        )
        self._known: dict[tuple[int, ...], tuple[tuple[RuleResult, ...], tuple[ReportParts, ...]]] = {}
        self._is_served = True
        self._seen: KindTable | None = None
        self._has_lost = False

    @property
    def is_idle(self) -> bool:
        """Return whether no report is waiting."""
        return not len(self._outbox)

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the report on one response."""
        review = outcome.review
        if review is None or not self._settings.of_admission or not outcome.answer.allowed:
            return
        if admission_request.is_dry_run or admission_request.operation == "DELETE" or not review.results:
            return
        if self._has_kinds():
            self._outbox.put(_Noted(admission_request, review, int(self._clock()), outcome.source))

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Queue the report on policies that were evaluated after the response."""
        self.answered(admission_request, path, outcome, seconds)

    def failed(self, path: str, error: BaseException) -> None:
        """Do nothing: a request that failed has no results."""

    async def run(self) -> None:
        """Write until cancelled."""
        if not self._settings.of_admission:
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._count.run())
            group.create_task(self._outbox.run())

    async def flush(self, seconds: float) -> None:
        """Write the remaining reports for at most `seconds`."""
        await self._outbox.flush(seconds)

    def _parts(
        self, results: Sequence[RuleResult], admission_request: AdmissionRequest, *, has_uid: bool
    ) -> tuple[ReportParts, ...]:
        """Return the contents of the reports on the results of a response.

        Results of rules that pass are the same objects every time. Their reports are cached by the ids of the results,
        which are kept with them, so that no other object can have such an id.
        """
        key = (has_uid, bool(admission_request.subresource), *map(id, results))
        known = self._known.get(key)
        if known is not None:
            return known[1]
        parts = tuple(map(ReportParts, self._groups(results, admission_request, has_uid=has_uid)))
        if all(result.status is Status.PASS for result in results):
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = tuple(results), parts
        return parts

    def _groups(
        self, results: Sequence[RuleResult], admission_request: AdmissionRequest, *, has_uid: bool
    ) -> Iterator[tuple[RuleResult, ...]]:
        """Yield the results that are reported, those of one report together.

        Kyverno: enforcing and auditing rules make separate reports; CEL policies are not reported while one of them can
        deny.
        """
        kept = [result for result in results if self._is_reported(result, admission_request, has_uid=has_uid)]
        legacy = [result for result in kept if result.rule.policy.kind in RULE_KINDS]
        for rule_type in (RuleType.MUTATION, RuleType.IMAGE_VERIFY):
            yield from _some(result for result in legacy if result.rule.type is rule_type)
        validations = [result for result in legacy if result.rule.type is RuleType.VALIDATION]
        for can_deny in (True, False):
            yield from _some(result for result in validations if result.rule.can_deny is can_deny)
        checks = [result for result in results if result.rule.policy.kind not in RULE_KINDS]
        may_deny = any(result.action is FailureAction.ENFORCE for result in checks)
        if not may_deny:
            yield from _some(result for result in kept if result.rule.policy.kind not in RULE_KINDS)

    def _is_reported(self, result: RuleResult, admission_request: AdmissionRequest, *, has_uid: bool) -> bool:
        kind = _TYPES.get(result.rule.type)
        if kind not in self._settings.types or result.status.value not in self._settings.statuses:
            return False
        if kind == "imageVerify" and admission_request.subresource:
            return False
        return (has_uid or kind == "mutate") and _NOT_REPORTED not in result.rule.policy.labels

    def _has_kinds(self) -> bool:
        kinds = self._kinds()
        if kinds is self._seen:
            return self._is_served
        self._seen = kinds
        is_served = all(kinds.by_resource(gvr) is not None for gvr in EPHEMERAL_REPORTS)
        if self._is_served and not is_served:
            log.error("there are no kinds of ephemeral reports: admission requests are not reported on")
        self._is_served = is_served
        return is_served

    async def _write(self, noted: _Noted) -> None:
        about = noted.about = noted.about or _about(noted.admission_request, noted.review)
        if about is None:
            return
        if noted.left is None:
            noted.left = list(self._parts(noted.review.results, noted.admission_request, has_uid=bool(about.uid)))
        while noted.left:
            await self._write_one(about, noted.left[0], noted.seconds)
            noted.left.pop(0)

    async def _write_one(self, about: Reported, parts: ReportParts, seconds: int) -> None:
        if not self._breaker.passes():
            return
        body = self._seals.seal(admission_report(about, parts, seconds, version_of=self._version_of))
        namespace = about.resource.namespace
        try:
            await self._client.submit(EPHEMERAL_REPORTS[0 if namespace else 1], body, namespace)
        except StatusError as error:
            if error.status == 403 and _TERMINATING in error.message:
                return  # the reported object is deleted with its namespace
            raise
        self._has_lost = False

    def _count_breaker(self, name: str, is_open: bool) -> None:
        if self._metrics is not None:
            self._metrics.count_breaker_call(name, is_open=is_open)

    def _lose(self, noted: _Noted, reason: str) -> None:
        """Count a dropped report; log the first one since the last that was written."""
        if self._metrics is not None:
            self._metrics.gave_up(_NAME)
        if not self._has_lost:
            fields = {"resource": str(ResourceRef.of(noted.review.request.object)), "error": reason}
            log.error("a report on an admission request could not be written", extra={"fields": fields})
        self._has_lost = True


def _some(results: Iterator[RuleResult]) -> Iterator[tuple[RuleResult, ...]]:
    """Yield results as one group, or nothing without results."""
    found = tuple(results)
    if found:
        yield found


def _about(admission_request: AdmissionRequest, review: Review) -> Reported | None:
    """Return the subject of a report on a request; None for objects that are never reported on.

    An object is final once no webhook can change it any more: when it has a uid and no rule changed it.
    """
    request = review.request
    kind = admission_request.kind
    if (kind.kind == "Event" and kind.group in _EVENT_GROUPS) or kind.group == REPORT_GROUP:
        return None  # Kyverno: events own nothing; and a report on a report would have one, too
    resource = ResourceRef.of(request.object)
    if not resource.name or request.gvr is None:
        return None
    uid = request.object["metadata"].get("uid")
    uid = uid if isinstance(uid, str) else ""
    is_final = (bool(uid) or admission_request.operation == "UPDATE") and all(
        result.rule.type is RuleType.VALIDATION for result in review.results
    )
    mark = mark_of(review.resource, is_final=is_final)
    return Reported(resource, uid, kind, request.gvr, admission_request.uid, mark)
