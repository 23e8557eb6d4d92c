"""Prometheus metrics of admission, with Kyverno's names and labels.

Children are bound once per set of labels and remembered, because looking them up costs more than counting. This module
must never open a port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pyverno.engine.result import FailureAction, RuleResult, RuleType
from pyverno.version import __version__
from pyverno.webhook.admission import Judged
from pyverno.webhook.metricsettings import MetricSettings
from pyverno.webhook.question import Question

__all__ = ["DEFAULT_BUCKETS", "Metrics"]

DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 25, 30)
_REQUEST: Final = (
    "resource_kind",
    "resource_namespace",
    "resource_request_operation",
    "request_allowed",
    "request_webhook",
)
_RESULT: Final = (
    "policy_validation_mode",
    "policy_type",
    "policy_background_mode",
    "policy_namespace",
    "policy_name",
    "resource_kind",
    "resource_namespace",
    "resource_request_operation",
    "rule_name",
    "rule_result",
    "rule_type",
    "rule_execution_cause",
    "dry_run",
)
_CEL_RESULT: Final = (
    "policy_validation_mode",
    "policy_background_mode",
    "policy_name",
    "policy_namespace",
    "resource_kind",
    "resource_namespace",
    "resource_request_operation",
    "execution_cause",
    "result",
)
_RULE_TYPES: Final = {
    RuleType.VALIDATION: "validate",
    RuleType.MUTATION: "mutate",
    RuleType.GENERATION: "generate",
    RuleType.IMAGE_VERIFY: "imageVerify",
    RuleType.DELETION: "delete",
}
_CEL_FAMILIES: Final = {
    "ValidatingPolicy": "validating",
    "MutatingPolicy": "mutating",
    "GeneratingPolicy": "generating",
    "ImageValidatingPolicy": "image_validating",
}
_CAUSE: Final = "admission_request"
_MOST_SERIES: Final = 20_000
"""Beyond this many sets of labels no new ones are made, so that names in requests can not fill the memory."""
_MOST_BATCHES: Final = 256
_Metric = TypeVar("_Metric", Counter, Histogram)


class _About(NamedTuple):
    """What the labels of a result say of the request."""

    kind: str
    namespace: str
    operation: str
    is_dry_run: bool


class _Batch:
    """The results of reviews that said the same, and how many they were."""

    __slots__ = ("about", "results", "times")

    def __init__(self, about: _About, results: Sequence[RuleResult]) -> None:
        self.about = about
        self.results = results
        self.times = 0


class Metrics:
    """Counts answers; an `Observer` of the webhook server."""

    def __init__(self, buckets: Sequence[float] = DEFAULT_BUCKETS) -> None:
        """Make all metrics in a registry of their own."""
        self.settings = MetricSettings()
        """The ConfigMap, of which the namespaces are looked at; whoever watches it writes this."""
        registry = CollectorRegistry()
        self.registry = registry
        self._requests = Counter("kyverno_admission_requests", "Admission requests.", _REQUEST, registry=registry)
        self._durations = Histogram(
            "kyverno_admission_review_duration_seconds",
            "Seconds that admission reviews took.",
            _REQUEST,
            registry=registry,
            buckets=buckets,
        )
        self._results = Counter("kyverno_policy_results", "Results of rules.", _RESULT, registry=registry)
        self._cel = {
            family: Counter(
                f"kyverno_{family}_policy_results", f"Results of {family} policies.", _CEL_RESULT, registry=registry
            )
            for family in _CEL_FAMILIES.values()
        }
        self._http = Counter(
            "kyverno_http_requests", "Requests by method and path.", ("http_method", "http_url"), registry=registry
        )
        self._failures = Counter("kyverno_http_failures", "Requests that were refused.", ("reason",), registry=registry)
        info = Gauge("kyverno_info", "The version that runs.", ("version",), registry=registry)
        info.labels(__version__).set(1)
        self._bound: dict[tuple[object, ...], Counter | Histogram] = {}
        self._batches: dict[tuple[object, ...], _Batch] = {}

    def answered(self, question: Question, path: str, judged: Judged, seconds: float) -> None:
        """Count one answer."""
        webhook = "MutatingWebhookConfiguration" if "mutate" in path else "ValidatingWebhookConfiguration"
        about = _About(question.kind.kind, question.namespace, question.operation.lower(), question.is_dry_run)
        if self.settings.namespaces.counts(about.namespace):
            labels = (*about[:3], _flag(judged.answer.allowed), webhook)
            _add(self._bind(self._requests, labels))
            duration = self._bind(self._durations, labels)
            if duration is not None:
                duration.observe(seconds)
        _add(self._bind(self._http, ("POST", "/" + path.split("/", 2)[1])))
        if judged.review is not None:
            self._count_results(judged.review.results, about)

    def failed(self, path: str, error: BaseException) -> None:
        """Count one refusal."""
        self._failures.labels(type(error).__name__).inc()

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        self._count_batches()
        return generate_latest(self.registry)

    def _count_results(self, results: Sequence[RuleResult], about: _About) -> None:
        """Put results off to be counted: those of rules that pass are the same objects in every review.

        The results are kept until then, so no other has the id of one of them.
        """
        key = about, *map(id, results)
        found = self._batches.get(key)
        if found is None:
            if len(self._batches) >= _MOST_BATCHES:
                self._count_batches()
            found = self._batches[key] = _Batch(about, results)
        found.times += 1

    def _count_batches(self) -> None:
        """Bring what was put off into the counters."""
        batches, self._batches = self._batches, {}
        for batch in batches.values():
            for result in batch.results:
                counter = self._counter_of(result, batch.about)
                if counter is not None:
                    counter.inc(batch.times)

    def _counter_of(self, result: RuleResult, about: _About) -> Counter | None:
        family = _CEL_FAMILIES.get(result.rule.policy.kind.removeprefix("Namespaced"))
        if family is not None:
            # Kyverno: the metrics of policies in CEL count every namespace
            return self._bind(self._cel[family], _cel_labels(result, about))
        if not self.settings.namespaces.counts(about.namespace):
            return None
        return self._bind(self._results, _labels(result, about))

    def _bind(self, metric: _Metric, labels: tuple[str, ...]) -> _Metric | None:
        """Return the child of a metric, None when there are too many already."""
        key = (id(metric), *labels)
        bound = self._bound.get(key)
        if bound is None:
            if len(self._bound) >= _MOST_SERIES:
                return None
            bound = self._bound[key] = metric.labels(*labels)
        return cast("_Metric", bound)


def _add(counter: Counter | None) -> None:
    if counter is not None:
        counter.inc()


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
        _CAUSE,
        _flag(about.is_dry_run),
    )


def _cel_labels(result: RuleResult, about: _About) -> tuple[str, ...]:
    policy = result.rule.policy
    return (
        "Deny" if result.action is FailureAction.ENFORCE else "Audit",
        _flag(policy.background),
        policy.name,
        policy.namespace,
        about.kind,
        about.namespace,
        about.operation,
        _CAUSE,
        result.status.value,
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"
