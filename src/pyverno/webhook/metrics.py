"""Prometheus metrics of admission, with Kyverno's names and labels.

Children are bound once per set of labels and remembered, because looking them up costs more than counting. This module
must never open a port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from pyverno.engine.engine import Review
from pyverno.engine.result import FailureAction, RuleResult, RuleType
from pyverno.version import __version__
from pyverno.webhook.admission import Judged
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
"""Beyond this many sets of labels no new ones are remembered, so that names in requests can not fill the memory."""


class Metrics:
    """Counts answers; an `Observer` of the webhook server."""

    def __init__(self, buckets: Sequence[float] = DEFAULT_BUCKETS) -> None:
        """Make all metrics in a registry of their own."""
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
        self._bound: dict[tuple[object, ...], Counter] = {}

    def answered(self, question: Question, path: str, judged: Judged, seconds: float) -> None:
        """Count one answer."""
        webhook = "MutatingWebhookConfiguration" if "mutate" in path else "ValidatingWebhookConfiguration"
        labels = (
            question.kind.kind,
            question.namespace,
            question.operation.lower(),
            "true" if judged.answer.allowed else "false",
            webhook,
        )
        self._count(self._requests, labels)
        self._durations.labels(*labels).observe(seconds)
        self._count(self._http, ("POST", "/" + path.split("/")[1]))
        if judged.review is not None:
            self._count_results(question, judged.review)

    def failed(self, path: str, error: BaseException) -> None:
        """Count one refusal."""
        self._failures.labels(type(error).__name__).inc()

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def _count_results(self, question: Question, review: Review) -> None:
        operation = question.operation.lower()
        for result in review.results:
            family = _CEL_FAMILIES.get(result.rule.policy.kind.removeprefix("Namespaced"))
            if family is not None:
                self._count(self._cel[family], _cel_labels(result, question, operation))
            else:
                self._count(self._results, _labels(result, question, operation))

    def _count(self, counter: Counter, labels: tuple[str, ...]) -> None:
        key = (id(counter), *labels)
        bound = self._bound.get(key)
        if bound is None:
            if len(self._bound) >= _MOST_SERIES:
                return
            bound = self._bound[key] = counter.labels(*labels)
        bound.inc()


def _labels(result: RuleResult, question: Question, operation: str) -> tuple[str, ...]:
    policy = result.rule.policy
    return (
        "enforce" if result.action is FailureAction.ENFORCE else "audit",
        "namespaced" if policy.namespace else "cluster",
        _flag(policy.background),
        policy.namespace or "-",
        policy.name,
        question.kind.kind,
        question.namespace,
        operation,
        result.rule.name,
        result.status.value,
        _RULE_TYPES[result.rule.type],
        _CAUSE,
        _flag(question.is_dry_run),
    )


def _cel_labels(result: RuleResult, question: Question, operation: str) -> tuple[str, ...]:
    policy = result.rule.policy
    return (
        "Deny" if result.action is FailureAction.ENFORCE else "Audit",
        _flag(policy.background),
        policy.name,
        policy.namespace,
        question.kind.kind,
        question.namespace,
        operation,
        _CAUSE,
        result.status.value,
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"
