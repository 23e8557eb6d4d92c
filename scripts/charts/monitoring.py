"""Grafana dashboards and alert rules, on the metric names of the catalogue: deploy/dashboards and the chart's copies.

`PANELS` holds Kyverno's panel set with percentiles, queues and reports added; each row is title, unit and expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["ALERTS", "DASHBOARDS", "monitoring_files"]

_Row = tuple[str, str, tuple[tuple[str, str], ...]]
_CEL: Final = ("validating", "mutating", "image_validating", "generating")


def _increase(metric: str, by: str, *, labels: str = "", window: str = "5m") -> tuple[str, str]:
    """Return an expression for how often something happened, and its legend."""
    return f"sum(increase({metric}{labels}[{window}])) by ({by})", "{{" + by.split(", ", maxsplit=1)[0] + "}}"


def _average(metric: str, by: str) -> tuple[str, str]:
    parts = [f"sum(rate({metric}_{part}[5m])) by ({by})" for part in ("sum", "count")]
    return " / ".join(parts), "{{" + by + "}}"


def _percentiles(metric: str) -> tuple[tuple[str, str], ...]:
    rate = f"sum(rate({metric}_bucket[5m])) by (le)"
    return tuple((f"histogram_quantile({share}, {rate})", f"p{share[2:].ljust(2, '0')}") for share in _SHARES)


_SHARES: Final = ("0.5", "0.95", "0.99")
_RESULTS: Final = "kyverno_policy_results_total"
_INFO: Final = "kyverno_policy_rule_info_total"
_REQUESTS: Final = "kyverno_admission_requests_total"
_REVIEW: Final = "kyverno_admission_review_duration_seconds"
_EXECUTION: Final = "kyverno_policy_execution_duration_seconds"
_CHANGES: Final = "kyverno_policy_changes_total"


_FAILURES: Final = _increase(_RESULTS, "policy_type", labels='{rule_result="fail"}')


def _share_of_failures(cause: str) -> tuple[str, str]:
    failed = f'sum(increase({_RESULTS}{{rule_result="fail", rule_execution_cause="{cause}"}}[24h]))'
    return f'{failed} / sum(increase({_RESULTS}{{rule_execution_cause="{cause}"}}[24h]))', "failures"


def _count_of_rules(kind: str) -> tuple[str, str]:
    return f'count(count({_INFO}{{rule_type="{kind}"}}) by (policy_name, rule_name))', kind


DASHBOARDS: Final[dict[str, tuple[str, dict[str, tuple[_Row, ...]]]]] = {
    "kyverno": (
        "Kyverno",
        {
            "Latest status": (
                ("Admission: share of failures, 24 h", "percentunit", (_share_of_failures("admission_request"),)),
                ("Background scan: share of failures, 24 h", "percentunit", (_share_of_failures("background_scan"),)),
                (
                    "Policies",
                    "short",
                    (
                        (f'count(count({_INFO}{{policy_type="cluster"}}) by (policy_name))', "cluster"),
                        (
                            f'count(count({_INFO}{{policy_type="namespaced"}}) by (policy_namespace, policy_name))',
                            "namespaced",
                        ),
                    ),
                ),
                ("Rules", "short", tuple(_count_of_rules(kind) for kind in ("validate", "mutate", "generate"))),
            ),
            "Policy and rule results": (
                (
                    "Admission results by rule",
                    "short",
                    (_increase(_RESULTS, "rule_result", labels='{rule_execution_cause="admission_request"}'),),
                ),
                (
                    "Background results by rule",
                    "short",
                    (_increase(_RESULTS, "rule_result", labels='{rule_execution_cause="background_scan"}'),),
                ),
                ("Results by policy", "short", (_increase(_RESULTS, "policy_name, rule_result"),)),
                (
                    "Failures by policy type",
                    "short",
                    (_FAILURES,),
                ),
            ),
            "Policies and rules": (
                ("Policies by type", "short", ((f"count({_INFO}) by (policy_type)", "{{policy_type}}"),)),
                (
                    "Policies by action",
                    "short",
                    ((f"count({_INFO}) by (policy_validation_mode)", "{{policy_validation_mode}}"),),
                ),
                (
                    "Policies by background mode",
                    "short",
                    ((f"count({_INFO}) by (policy_background_mode)", "{{policy_background_mode}}"),),
                ),
                (
                    "Policies by namespace",
                    "short",
                    ((f"count({_INFO}) by (policy_namespace)", "{{policy_namespace}}"),),
                ),
                ("Rules by type", "short", ((f"count({_INFO}) by (rule_type)", "{{rule_type}}"),)),
            ),
            "Execution latency": (
                ("Average by rule type", "s", (_average(_EXECUTION, "rule_type"),)),
                ("Average by policy type", "s", (_average(_EXECUTION, "policy_type"),)),
                ("Percentiles", "s", _percentiles(_EXECUTION)),
            ),
            "Admission review latency": (
                ("Average by operation", "s", (_average(_REVIEW, "resource_request_operation"),)),
                ("Average by kind", "s", (_average(_REVIEW, "resource_kind"),)),
                ("Percentiles", "s", _percentiles(_REVIEW)),
                ("Rate", "reqps", ((f"sum(rate({_REVIEW}_count[5m]))", "reviews"),)),
            ),
            "Policy changes": (
                ("By change", "short", (_increase(_CHANGES, "policy_change_type"),)),
                ("By policy type", "short", (_increase(_CHANGES, "policy_type"),)),
                ("24 h", "short", ((f"sum(increase({_CHANGES}[24h]))", "changes"),)),
            ),
            "Admission requests": (
                ("By operation", "short", (_increase(_REQUESTS, "resource_request_operation"),)),
                ("By kind", "short", (_increase(_REQUESTS, "resource_kind"),)),
                ("Denied", "short", (_increase(_REQUESTS, "resource_kind", labels='{request_allowed="false"}'),)),
                ("24 h", "short", ((f"sum(increase({_REQUESTS}[24h]))", "requests"),)),
            ),
            "CEL policies": tuple(
                row
                for word in _CEL
                for row in (
                    (
                        f"{word.replace('_', ' ').capitalize()} policies: results",
                        "short",
                        (
                            _increase(f"kyverno_{word}_policy_results_total", "result"),
                            _increase(f"kyverno_{word}_policy_results_total", "execution_cause"),
                        ),
                    ),
                    (
                        f"{word.replace('_', ' ').capitalize()} policies: latency",
                        "s",
                        _percentiles(f"kyverno_{word}_policy_execution_duration_seconds"),
                    ),
                )
            ),
        },
    ),
    "kyverno-controllers": (
        "Kyverno controllers",
        {
            "Queues": (
                ("Oldest UpdateRequest", "s", (("max(kyverno_updaterequest_oldest_seconds)", "age"),)),
                (
                    "UpdateRequests",
                    "short",
                    (("sum(kyverno_updaterequest_total) by (resource_namespace)", "{{resource_namespace}}"),),
                ),
                (
                    "Failures of UpdateRequests",
                    "short",
                    (_increase("kyverno_updaterequest_failures_total", "request_type"),),
                ),
                ("Reconciliations", "short", (_increase("kyverno_controller_reconcile_total", "controller_name"),)),
                ("Retries", "short", (_increase("kyverno_controller_requeue_total", "controller_name"),)),
                ("Keys given up", "short", (_increase("kyverno_controller_drop_total", "controller_name"),)),
            ),
            "Reports": (
                ("Objects followed", "short", (("sum(kyverno_scan_objects)", "objects"),)),
                ("Oldest object without a report", "s", (("max(kyverno_scan_queue_age_seconds)", "age"),)),
                ("Last sweep", "s", (("max(kyverno_scan_duration_seconds)", "duration"),)),
                (
                    "Unreadable resources",
                    "short",
                    (("sum(kyverno_scan_unreadable_resources) by (resource)", "{{resource}}"),),
                ),
                ("Reports not written", "short", (_increase("kyverno_breaker_drops_total", "circuit_name"),)),
            ),
            "Health": (
                (
                    "Caches behind the cluster",
                    "s",
                    (("max(kyverno_cache_stale_seconds) by (resource)", "{{resource}}"),),
                ),
                (
                    "Days until certificates end",
                    "d",
                    (("(min(kyverno_certificate_end_timestamp_seconds) by (secret) - time()) / 86400", "{{secret}}"),),
                ),
                (
                    "Requests to the API server",
                    "reqps",
                    (("sum(rate(kyverno_client_queries_total[5m])) by (operation)", "{{operation}}"),),
                ),
                ("Events dropped", "short", (("sum(increase(kyverno_events_dropped_total[5m]))", "events"),)),
                ("Reviews over their deadline", "short", (("sum(kyverno_admission_reviews_overdue)", "reviews"),)),
                (
                    "Global context entries unavailable",
                    "short",
                    (("sum(kyverno_globalcontext_entry_unavailable) by (entry)", "{{entry}}"),),
                ),
            ),
            "Cleanup": (
                (
                    "Deleted by cleanup policies",
                    "short",
                    (_increase("kyverno_cleanup_controller_deletedobjects_total", "policy_name"),),
                ),
                (
                    "Deleted by deleting policies",
                    "short",
                    (_increase("kyverno_deleting_controller_deletedobjects_total", "policy_name"),),
                ),
                (
                    "Deleted by time to live",
                    "short",
                    (_increase("kyverno_ttl_controller_deletedobjects_total", "resource_resource"),),
                ),
            ),
        },
    ),
}
"""Dashboards by file name: title, and rows of panels."""

ALERTS: Final = (
    (
        "WebhookSlow",
        f"histogram_quantile(0.99, sum(rate({_REVIEW}_bucket[5m])) by (le)) > 8",
        "5m",
        "warning",
        "99 of 100 admission reviews take up to {{ $value }} s; the API server waits 10 s.",
    ),
    (
        "WebhookFailing",
        'sum(rate(apiserver_admission_webhook_rejection_count{name=~".*kyverno.*", error_type!="no_error"}[5m])) > 0',
        "5m",
        "critical",
        "The API server cannot use an answer of the webhook.",
    ),
    (
        "WebhookFailsOpen",
        'sum(rate(apiserver_admission_webhook_fail_open_count{name=~".*kyverno.*"}[5m])) > 0',
        "5m",
        "critical",
        "Requests are admitted without evaluation, because the webhook does not answer.",
    ),
    (
        "CertificateEndsSoon",
        "min(kyverno_certificate_end_timestamp_seconds) by (secret) - time() < 7 * 86400",
        "1h",
        "critical",
        "The certificate in {{ $labels.secret }} ends within a week and has not been renewed.",
    ),
    (
        "CacheStale",
        "max(kyverno_cache_stale_seconds) by (resource) > 300",
        "5m",
        "warning",
        "The cache of {{ $labels.resource }} has not followed the cluster for {{ $value }} s.",
    ),
    ("EventsDropped", "sum(increase(kyverno_events_dropped_total[15m])) > 0", "15m", "warning", "Events are lost."),
    (
        "ReportsDropped",
        "sum(increase(kyverno_breaker_drops_total[15m])) by (circuit_name) > 0",
        "15m",
        "warning",
        "Reports are not written: there are too many of them.",
    ),
    (
        "PolicyNotReady",
        f'count({_INFO}{{status_ready="false"}}) by (policy_namespace, policy_name) > 0',
        "10m",
        "warning",
        "Policy {{ $labels.policy_name }} is not ready; its status gives the reason.",
    ),
    (
        "RuleErrors",
        f'sum(rate({_RESULTS}{{rule_result="error", rule_type="imageVerify"}}[10m])) > 0.1',
        "10m",
        "warning",
        "Images cannot be verified.",
    ),
    (
        "UpdateRequestsStuck",
        "max(kyverno_updaterequest_oldest_seconds) > 900",
        "10m",
        "warning",
        "An UpdateRequest has waited for {{ $value }} s.",
    ),
    (
        "RulesStopped",
        "sum(kyverno_quarantines) > 0",
        "5m",
        "warning",
        "Policies that undo each other's changes are stopped.",
    ),
    ("NoController", "absent(kyverno_info)", "10m", "critical", "No controller delivers metrics."),
)
"""Alert rules: name, expression, duration, severity, text."""


def monitoring_files(folder: Path) -> dict[Path, str]:
    """Return dashboards and alert rules, below deploy/dashboards and in the chart."""
    alerts = "# Made by `make charts`; do not edit.\n" + yaml.safe_dump(_rules(), sort_keys=False, width=120)
    found = {folder.parent / "dashboards" / "alerts.yaml": alerts, folder / "pyverno" / "files" / "alerts.yaml": alerts}
    for name, (title, rows) in DASHBOARDS.items():
        text = json.dumps(_dashboard(name, title, rows), indent=1) + "\n"
        found[folder.parent / "dashboards" / f"{name}.json"] = text
        found[folder / "pyverno" / "files" / "dashboards" / f"{name}.json"] = text
    return found


def _rules() -> dict[str, Any]:
    rules = [
        {
            "alert": f"Kyverno{name}",
            "expr": expression,
            "for": duration,
            "labels": {"severity": severity},
            "annotations": {"summary": text},
        }
        for name, expression, duration, severity, text in ALERTS
    ]
    return {"groups": [{"name": "kyverno", "rules": rules}]}


def _dashboard(name: str, title: str, rows: dict[str, tuple[_Row, ...]]) -> dict[str, Any]:
    variable = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    return {
        "uid": name,
        "title": title,
        "tags": ["kyverno"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": list(_panels(rows)),
    }


def _panels(rows: dict[str, tuple[_Row, ...]]) -> Iterator[dict[str, Any]]:
    """Yield a heading for each row and its panels below it, three in a line."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    number, height = 0, 0
    for heading, panels in rows.items():
        number += 1
        place = {"x": 0, "y": height, "w": 24, "h": 1}
        yield {"id": number, "type": "row", "title": heading, "collapsed": False, "gridPos": place, "panels": []}
        height += 1
        for index, (title, unit, expressions) in enumerate(panels):
            number += 1
            yield {
                "id": number,
                "type": "timeseries",
                "title": title,
                "datasource": source,
                "gridPos": {"x": index % 3 * 8, "y": height + index // 3 * 8, "w": 8, "h": 8},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + place), "expr": expression, "legendFormat": legend, "datasource": source}
                    for place, (expression, legend) in enumerate(expressions)
                ],
            }
        height += (len(panels) + 2) // 3 * 8
