"""Metrics of admission and of the controllers, with Kyverno's names and labels.

Results of rules that passed are the same objects in every review; they are counted by review and added to their series
when metrics are read. This module must never open a port.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from pyverno.engine.result import FailureAction, RuleResult, RuleType, Status
from pyverno.kube.admissionreview import AdmissionRequest
from pyverno.policy.kinds import POLICY_KINDS
from pyverno.telemetry.catalog import METRICS, POLICY_WORDS
from pyverno.telemetry.instruments import Counter, Histogram, Instruments, Reading, Spread
from pyverno.telemetry.metricsettings import MetricSettings
from pyverno.telemetry.observer import AdmissionOutcome
from pyverno.telemetry.sharing import Shared
from pyverno.telemetry.snapshots import joined
from pyverno.version import __version__

if TYPE_CHECKING:
    from pyverno.telemetry.exposition import Exposition

__all__ = ["Metrics"]

_RULE_TYPES: Final = {
    RuleType.VALIDATION: "validate",
    RuleType.MUTATION: "mutate",
    RuleType.GENERATION: "generate",
    RuleType.IMAGE_VERIFY: "imageVerify",
    RuleType.DELETION: "delete",
}
_CAUSE: Final = "admission_request"
_BACKGROUND: Final = "background_scan"
_MAX_BATCHES: Final = 256
_OF_NAMESPACES: Final = ("resource_namespace", "policy_namespace")

_DOORS: Final = frozenset(
    f"/{path.split('/', 2)[1]}"
    for path in ("/validate", "/mutate", *(path for row in POLICY_KINDS for path, _ in row.routes))
)
"""First parts of the paths that webhooks are called at."""

log = logging.getLogger("pyverno.webhook")


class _About(NamedTuple):
    """The labels of a result that describe the request."""

    kind: str
    namespace: str
    operation: str
    is_dry_run: bool
    cause: str = _CAUSE


class _Batch:
    """The results of equal reviews, their number, and the duration of each rule."""

    __slots__ = ("about", "results", "spreads", "times")

    def __init__(self, about: _About, results: Sequence[RuleResult], bounds: set[tuple[float, ...]]) -> None:
        self.about = about
        self.results = results
        self.times = 0
        self.spreads = {each: Spread(len(each)) for each in bounds}

    def add(self, seconds: float) -> None:
        """Count one more of these reviews."""
        self.times += 1
        share = seconds / len(self.results)
        for bounds, spread in self.spreads.items():
            spread.add(bounds, share)


class _Family(NamedTuple):
    """The two instruments of results, how many and how long they took, and what makes their labels."""

    results: Counter
    durations: Histogram
    labels: Callable[[RuleResult, _About], tuple[str, ...]]


class Metrics:
    """Counts answers (an `Observer` of the webhook server) and what controllers do."""

    def __init__(self) -> None:
        """Make all instruments."""
        self.settings = MetricSettings()
        """The ConfigMap of this moment: namespaces count at once, everything else from the next `begin` on."""
        self.begun = time.time_ns()
        """Since when is counted, in nanoseconds since 1970."""
        self.instruments = made = Instruments(on_full=_warn_full)
        self.overdue: Callable[[], int] = lambda: 0
        """Looks up how many threads go on with reviews after their deadline."""
        self._scrapes = Shared(self._write)
        self._exposition: Exposition | None = None
        counter, histogram, gauge = made.counter, made.histogram, made.gauge
        self._requests = counter(METRICS["kyverno_admission_requests"])
        self._durations = histogram(METRICS["kyverno_admission_review_duration_seconds"])
        self._rules = _rule_family(made)
        families = {word: _cel_family(made, word) for word in POLICY_WORDS}
        self._cel = {row.kind: families[row.metric] for row in POLICY_KINDS if row.metric}
        self._http = counter(METRICS["kyverno_http_requests"])
        self._http_durations = histogram(METRICS["kyverno_http_requests_duration_seconds"])
        self._faults = counter(METRICS["kyverno_rule_faults"])
        self._failures = counter(METRICS["kyverno_http_failures"])
        gauge(METRICS["kyverno_info"], lambda: (((__version__,), 1),))
        self._reconciled = counter(METRICS["kyverno_controller_reconcile"])
        self._requeued = counter(METRICS["kyverno_controller_requeue"])
        self._dropped = counter(METRICS["kyverno_controller_drop"])
        self._unconfirmed = counter(METRICS["kyverno_unconfirmed_requests"])
        self._changes = counter(METRICS["kyverno_change_faults"])
        self._queries = counter(METRICS["kyverno_client_queries"])
        self._events = counter(METRICS["kyverno_events_dropped"])
        self._asked = counter(METRICS["kyverno_breaker_total"])
        self._broken = counter(METRICS["kyverno_breaker_drops"])
        gauge(METRICS["kyverno_metrics_series_refused"], lambda: (((), made.refused),))
        gauge(METRICS["kyverno_admission_reviews_overdue"], lambda: (((), self.overdue()),))
        self._batches: dict[tuple[object, ...], _Batch] = {}

    # ------------------------------------------------------------------------------------------------------- answers

    def answered(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Count one answer."""
        webhook = "MutatingWebhookConfiguration" if "mutate" in path else "ValidatingWebhookConfiguration"
        about = _About(
            admission_request.kind.kind,
            admission_request.namespace,
            admission_request.operation.lower(),
            admission_request.is_dry_run,
        )
        if self.settings.namespaces.counts(about.namespace):
            labels = (*about[:3], _flag(outcome.answer.allowed), webhook)
            self._requests.add(labels)
            self._durations.observe(labels, seconds)
        where = ("POST", _webhook_type(path))
        self._http.add(where)
        self._http_durations.observe(where, seconds)
        self._count_faults(outcome)
        if outcome.review is not None:
            self._count_results(outcome.review.results, about, seconds)

    def audited(
        self, admission_request: AdmissionRequest, path: str, outcome: AdmissionOutcome, seconds: float
    ) -> None:
        """Count the results of policies that were evaluated after the response."""
        self._count_faults(outcome)
        if outcome.review is not None:
            about = _About(
                admission_request.kind.kind,
                admission_request.namespace,
                admission_request.operation.lower(),
                admission_request.is_dry_run,
            )
            self._count_results(outcome.review.results, about, seconds)

    def _count_faults(self, outcome: AdmissionOutcome) -> None:
        if outcome.fault is not None:
            self._faults.add((outcome.fault.code,))
        for _, fault in outcome.review.faults if outcome.review is not None else ():
            self._faults.add((fault.code,))

    def failed(self, path: str, error: BaseException) -> None:
        """Count one refusal; paths that do not exist are a caller's text and counted as one."""
        self._failures.add((type(error).__name__,))
        webhook_type = _webhook_type(path)
        self._http.add(("POST", webhook_type if webhook_type in _DOORS else "other"))

    def scanned(self, results: Sequence[RuleResult], kind: str, namespace: str, seconds: float) -> None:
        """Count the results of a background scan for one object."""
        self._count_results(results, _About(kind, namespace, "create", is_dry_run=False, cause=_BACKGROUND), seconds)

    # --------------------------------------------------------------------------------------------------- controllers

    def reconciled(self, controller: str) -> None:
        """Count one round of a controller."""
        self._reconciled.add((controller,))

    def requeued(self, controller: str, times: int) -> None:
        """Count a round that must be repeated; `times` is how often it has been in a row."""
        self._requeued.add((controller, str(times)))

    def gave_up(self, controller: str) -> None:
        """Count work that a controller does not try again."""
        self._dropped.add((controller,))

    def left_unconfirmed(self, work: str) -> None:
        """Count a request that the API server does not confirm, and the work that does not follow from it."""
        self._unconfirmed.add((work,))

    def faulted_change(self, resource: str) -> None:
        """Count a change of an object of a resource that ran into a bug."""
        self._changes.add((resource,))

    def note_namespace(self, name: str, *, is_gone: bool) -> None:
        """Let the series of a namespace that was deleted go a while later."""
        follow = self.instruments.depart if is_gone else self.instruments.stay
        for label in _OF_NAMESPACES:
            follow(((label, name),))

    def queried(self, operation: str, resource: str, namespace: str) -> None:
        """Count a request to the API server (`create`, `get`, `list`, `watch`, `update_status` and so on)."""
        self._queries.add((operation, "dynamic", resource, namespace))

    def dropped_event(self) -> None:
        """Count an event that could not be written."""
        self._events.add()

    def count_breaker_call(self, name: str, *, is_open: bool) -> None:
        """Count a question to a circuit breaker, and whether that kept something from being done."""
        self._asked.add((name,))
        if is_open:
            self._broken.add((name,))

    # ------------------------------------------------------------------------------------------------------- reading

    def begin(self) -> None:
        """Forget everything and begin anew with the metrics, labels and buckets of the settings of this moment."""
        self._batches = {}
        self.begun = time.time_ns()
        self.instruments.begin(self.settings)

    def read(self) -> Iterator[Reading]:
        """Yield the counts."""
        self._count_batches()
        return self.instruments.read()

    async def gather(self) -> Sequence[Reading]:
        """Return what was counted, as a replica of several processes does; requests are answered in between."""
        self._count_batches()
        found: list[Reading] = []
        for reading in self.instruments.slices():
            found.append(reading)
            await asyncio.sleep(0)
        return joined(found)

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return self._writer().to_bytes(self.read())

    async def scrape(self) -> Sequence[bytes]:
        """Return the same in pieces, made once for concurrent readers; requests are answered in between."""
        return await self._scrapes.get()

    async def _write(self) -> Sequence[bytes]:
        self._count_batches()
        found: list[bytes] = []
        for piece in self._writer().pieces(self.instruments.slices()):
            found.append(piece)
            await asyncio.sleep(0)
        return found

    def _writer(self) -> Exposition:
        if self._exposition is None:
            from pyverno.telemetry.exposition import Exposition  # a sandbox counts and is never scraped

            self._exposition = Exposition()
        return self._exposition

    def _count_results(self, results: Sequence[RuleResult], about: _About, seconds: float) -> None:
        """Put results off to be counted: those of rules that pass are the same objects in every review.

        Reviews with other results go by rules, actions and statuses, which are all that is counted of them. The results
        are kept until then, so no other has the id of one of them. A review is timed as a whole, because rules that
        pass are judged together; each rule is taken to have used an equal part.
        """
        if not results:
            return
        key: tuple[object, ...] = about, *map(id, results)
        found = self._batches.get(key)
        if found is None and any(result.status is not Status.PASS for result in results):
            key = about, *((id(result.rule), result.action, result.status) for result in results)
            found = self._batches.get(key)
        if found is None:
            if len(self._batches) >= _MAX_BATCHES:
                self._count_batches()
            bounds = {self._family_of(result).durations.bounds for result in results}
            found = self._batches[key] = _Batch(about, results, bounds)
        found.add(seconds)

    def _count_batches(self) -> None:
        """Add deferred batches to the counters."""
        batches, self._batches = self._batches, {}
        for batch in batches.values():
            for result in batch.results:
                self._count_result(result, batch)

    def _count_result(self, result: RuleResult, batch: _Batch) -> None:
        family = self._family_of(result)
        # Kyverno: the metrics of policies in CEL count every namespace, the others go by that of the policy
        if family is not self._rules or self.settings.namespaces.counts(result.rule.policy.namespace):
            labels = family.labels(result, batch.about)
            family.results.add(labels, batch.times)
            family.durations.merge(labels, batch.spreads[family.durations.bounds])

    def _family_of(self, result: RuleResult) -> _Family:
        return self._cel.get(result.rule.policy.kind, self._rules)


def _rule_family(made: Instruments) -> _Family:
    return _Family(
        made.counter(METRICS["kyverno_policy_results"]),
        made.histogram(METRICS["kyverno_policy_execution_duration_seconds"]),
        _labels,
    )


def _cel_family(made: Instruments, word: str) -> _Family:
    results = METRICS[f"kyverno_{word}_policy_results"]
    cause = _BACKGROUND if word == "generating" else ""  # Kyverno: the same in every process
    return _Family(
        made.counter(results),
        made.histogram(METRICS[f"kyverno_{word}_policy_execution_duration_seconds"]),
        lambda result, about: _cel_labels(result, about, cause or about.cause)[-len(results.labels) :],
    )


def _warn_full() -> None:
    log.warning("there are too many series of metrics: new ones are counted as _other")


def _webhook_type(path: str) -> str:
    return "/" + path[1:].partition("/")[0]


def _labels(result: RuleResult, about: _About) -> tuple[str, ...]:
    policy = result.rule.policy
    return (
        "enforce" if result.action is FailureAction.ENFORCE else "audit",
        "namespaced" if policy.namespace else "cluster",
        _flag(policy.background),
        policy.namespace or "-",
        policy.name,
        about.kind,
        about.namespace,
        about.operation,
        result.rule.name,
        result.status.value,
        _RULE_TYPES[result.rule.type],
        about.cause,
        _flag(about.is_dry_run),
    )


def _cel_labels(result: RuleResult, about: _About, cause: str) -> tuple[str, ...]:
    policy = result.rule.policy
    return (
        "Deny" if result.action is FailureAction.ENFORCE else "Audit",
        _flag(policy.background),
        policy.name,
        policy.namespace,
        about.kind,
        about.namespace,
        about.operation,
        cause,
        result.status.value,
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"
