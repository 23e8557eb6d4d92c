"""The one table of metrics: names, meanings and labels, Kyverno's where Kyverno has the metric.

To add a metric, add its row and make its instrument with `Instruments.counter`, `gauge` or `histogram`; the reference
page follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyverno.policy.kinds import POLICY_KINDS
from pyverno.telemetry.metric import Metric

__all__ = ["CLEANUP_WORDS", "METRICS", "POLICY_WORDS"]

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
_CEL_LEFT_OUT: Final = {"mutating": 1, "generating": 2}
"""How many of the first labels the results of a policy kind go without."""
_POLICY: Final = (
    "policy_validation_mode",
    "policy_type",
    "policy_background_mode",
    "policy_namespace",
    "policy_name",
)
_RULE: Final = (
    "policy_name",
    "policy_namespace",
    "policy_type",
    "policy_validation_mode",
    "policy_background_mode",
    "status_ready",
    "rule_name",
    "rule_type",
)
_HTTP: Final = ("http_method", "http_url")
_QUERY: Final = ("operation", "client_type", "resource_kind", "resource_namespace")
_CONTROLLER: Final = ("controller_name",)

_DELETION: Final = ("policy_type", "policy_namespace", "policy_name")
_DELETED: Final = ("resource_namespace", "deletion_propagation")
_TTL_RESOURCE: Final = ("resource_group", "resource_version", "resource_resource")

CLEANUP_WORDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "cleanup": ("cleanup policies", (*_DELETION, "resource_kind", *_DELETED)),
    "deleting": ("deleting policies", (*_DELETION, "resource", *_DELETED)),
    "ttl": ("times to live", ("resource_namespace", *_TTL_RESOURCE)),
}
"""The words by which metrics name what deletes: its name in texts and the labels of its objects."""

POLICY_WORDS: Final = tuple(dict.fromkeys(row.metric for row in POLICY_KINDS if row.metric))
"""The words by which metrics name the kinds of policies in CEL, such as `validating`."""


def _of_cel_policies() -> Iterator[Metric]:
    for word in POLICY_WORDS:
        labels, policies = _CEL_RESULT[_CEL_LEFT_OUT.get(word, 0) :], f"{word.replace('_', ' ')} policies"
        yield Metric("counter", f"kyverno_{word}_policy_results", f"Results of {policies}.", labels)
        name = f"kyverno_{word}_policy_execution_duration_seconds"
        yield Metric("histogram", name, f"Execution time of {policies} in seconds.", labels)


def _of_deletions() -> Iterator[Metric]:
    for word, (cause, labels) in CLEANUP_WORDS.items():
        name = f"kyverno_{word}_controller"
        yield Metric("counter", f"{name}_deletedobjects", f"Objects deleted because of {cause}.", labels)
        yield Metric("counter", f"{name}_errors", f"Objects that could not be deleted because of {cause}.", labels)


_ROWS: Final[tuple[Metric, ...]] = (
    Metric("counter", "kyverno_admission_requests", "Admission requests.", _REQUEST),
    Metric(
        "histogram", "kyverno_admission_review_duration_seconds", "Duration of admission reviews in seconds.", _REQUEST
    ),
    Metric("counter", "kyverno_policy_results", "Results of rules.", _RESULT),
    Metric("histogram", "kyverno_policy_execution_duration_seconds", "Execution time of rules in seconds.", _RESULT),
    *_of_cel_policies(),
    Metric(
        "counter", "kyverno_policy_changes", "Changes of policies.", (*_POLICY, "policy_change_type"), is_common=True
    ),
    Metric("gauge", "kyverno_policy_rule_info_total", "Rules of the loaded policies, 1 each.", _RULE),
    Metric("counter", "kyverno_http_requests", "HTTP requests by method and first part of the path.", _HTTP),
    Metric("histogram", "kyverno_http_requests_duration_seconds", "Duration of HTTP requests in seconds.", _HTTP),
    Metric("counter", "kyverno_controller_reconcile", "Reconciliations of a controller.", _CONTROLLER),
    Metric(
        "counter",
        "kyverno_controller_requeue",
        "Reconciliations that are retried, by the number of retries in a row.",
        (*_CONTROLLER, "num_requeues"),
    ),
    Metric("counter", "kyverno_controller_drop", "Keys that a controller gave up.", _CONTROLLER),
    Metric("counter", "kyverno_change_faults", "Changes of objects that ran into a bug, by resource.", ("resource",)),
    Metric(
        "counter",
        "kyverno_unconfirmed_requests",
        "Admission requests that the API server does not confirm, by the work that they do not cause.",
        ("work",),
    ),
    Metric("counter", "kyverno_client_queries", "Requests to the API server.", _QUERY),
    *_of_deletions(),
    Metric("gauge", "kyverno_ttl_controller_info", "Resources whose objects may have a time to live.", _TTL_RESOURCE),
    Metric("counter", "kyverno_events_dropped", "Events that could not be written."),
    Metric("counter", "kyverno_breaker_total", "Operations that a circuit breaker guarded.", ("circuit_name",)),
    Metric("counter", "kyverno_breaker_drops", "Operations that an open circuit breaker dropped.", ("circuit_name",)),
    Metric("gauge", "kyverno_info", "Version of the process.", ("version",)),
    Metric("gauge", "kyverno_updaterequest_total", "UpdateRequests that are not completed.", ("resource_namespace",)),
    Metric(
        "gauge",
        "kyverno_updaterequest_oldest_seconds",
        "Age of the oldest UpdateRequest that is not completed.",
        is_addition=True,
    ),
    Metric(
        "counter",
        "kyverno_updaterequest_failures",
        "Failures of UpdateRequests, which are retried.",
        ("request_type",),
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_quarantines",
        "Rules that are stopped because policies or controllers loop, by object or by chain of objects.",
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_certificate_end_timestamp_seconds",
        "When the newest certificate of a Secret expires, in seconds since 1970.",
        ("secret",),
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_cache_stale_seconds",
        "Seconds since the cache of a resource last followed the cluster; 0 while it does.",
        ("resource",),
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_globalcontext_entry_unavailable",
        "1 while reading a GlobalContextEntry is an error, otherwise 0.",
        ("entry",),
        is_addition=True,
    ),
    Metric(
        "counter",
        "kyverno_http_failures",
        "Rejected HTTP requests; `MalformedRequestError` counts malformed HTTP.",
        ("reason",),
        is_addition=True,
    ),
    Metric(
        "counter",
        "kyverno_rule_faults",
        "Rules that ended with an error because of a bug.",
        ("code",),
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_metrics_series_refused",
        "Observations counted as `_other` because there are too many series.",
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_admission_reviews_overdue",
        "Reviews that still run in their thread after their deadline.",
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_scan_unreadable_resources",
        "Resources that policies match and the reports controller cannot list, 1 each.",
        ("resource",),
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_scan_queue_age_seconds",
        "Seconds that the oldest scanned object has waited for its report.",
        is_addition=True,
    ),
    Metric(
        "gauge",
        "kyverno_scan_duration_seconds",
        "Duration of the last sweep over objects whose policies changed, in seconds.",
        is_addition=True,
    ),
    Metric("gauge", "kyverno_scan_objects", "Objects that the background scan follows.", is_addition=True),
    Metric(
        "gauge",
        "kyverno_scan_events_held_back",
        "Events about violations that were not sent because there were too many.",
        is_addition=True,
    ),
)

METRICS: Final[Mapping[str, Metric]] = {row.name: row for row in _ROWS}
"""All metrics by name."""
