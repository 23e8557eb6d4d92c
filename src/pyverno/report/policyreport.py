"""PolicyReports: results of reviews in the form of `wgpolicyk8s.io/v1alpha2` and `openreports.io/v1alpha1`.

Every front door makes its reports here; the caller gives the times.
"""

from __future__ import annotations

import json

from pyverno.engine.effects import CreateEffect
from pyverno.engine.result import (
    AdmissionDetail,
    CelDetail,
    PodSecurityDetail,
    ResourceRef,
    RuleResult,
    RuleType,
    Status,
)
from pyverno.kube.json import JSONObject
from pyverno.report.summary import reported_status
from pyverno.value import dataclass

__all__ = [
    "OPEN_REPORTS",
    "ReportEntry",
    "plain_result",
    "result_object",
    "result_order",
]

_OVERRIDES = {
    "pass": "passMessage",
    "fail": "failMessage",
    "warn": "warnMessage",
    "error": "errorMessage",
    "skip": "skipMessage",
}
_SEVERITIES = frozenset({"critical", "high", "medium", "low", "info"})
_FAILED = (Status.FAIL, Status.ERROR)
_BINDINGS = {"MutatingAdmissionPolicy": "mapBinding"}
_WITH_INDEX = ("ValidatingPolicy", "NamespacedValidatingPolicy")
OPEN_REPORTS = "openreports.io/v1alpha1"


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One result about one object, at a time in seconds since the Unix epoch."""

    result: RuleResult
    resource: ResourceRef
    seconds: int
    uid: str = ""


def result_object(entry: ReportEntry, *, audit_warn: bool = False) -> JSONObject:
    """Return one item of `results` with its object under `resources`."""
    item = plain_result(entry.result, entry.seconds, audit_warn=audit_warn)
    item["resources"] = [_reference(entry)]
    return item


def plain_result(result: RuleResult, seconds: int, *, audit_warn: bool = False) -> JSONObject:
    """Return one item of `results` for a report of a single object."""
    policy = result.rule.policy
    status = reported_status(result, audit_warn=audit_warn)
    item: JSONObject = {
        "source": policy.source,
        "policy": policy.key,
        "result": status.value,
        **({"scored": True} if policy.is_scored else {}),
        "timestamp": {"seconds": seconds, "nanos": 0},
    }
    if result.rule_name:
        item["rule"] = result.rule_name
    message = _message(result, status.value)
    if message:
        item["message"] = message
    category = policy.annotations.get("policies.kyverno.io/category")
    if category:
        item["category"] = category
    severity = policy.annotations.get("policies.kyverno.io/severity")
    if severity in _SEVERITIES:
        item["severity"] = severity
    properties = _properties(result)
    if properties:
        item["properties"] = properties
    return item


def _message(result: RuleResult, status: str) -> str:
    properties = result.properties
    # a reported warning is a failure of a rule that is not scored
    named = properties.get(_OVERRIDES[status]) or properties.get(_OVERRIDES[result.status.value])
    return named or properties.get("message") or result.message


def _reference(entry: ReportEntry) -> JSONObject:
    ref = entry.resource
    reference: JSONObject = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
    if ref.namespace:
        reference["namespace"] = ref.namespace
    if entry.uid:
        reference["uid"] = entry.uid
    return reference


def _properties(result: RuleResult) -> JSONObject:
    policy = result.rule.policy
    properties: JSONObject = dict(result.properties)
    if result.rule.type is not RuleType.DELETION:
        process = "background scan" if policy.background else "admission review" if policy.admission else ""
        if process:
            properties["process"] = process
    if result.exceptions:
        properties["exceptions"] = ",".join(key.rpartition("/")[2] for key in result.exceptions)
    if isinstance(result.detail, PodSecurityDetail) and result.detail.checks:
        checks = result.detail.checks
        properties["standard"] = result.detail.level
        properties["version"] = result.detail.version
        properties["controls"] = ",".join(sorted(str(check["id"]) for check in checks))
        listed = [{"ID": check["id"], "Name": check["name"], "Images": check["images"] or None} for check in checks]
        # fields in Kyverno's order, because users compare texts
        properties["controlsJSON"] = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    properties = {**_cel_properties(result), **properties}
    if result.target is not None and result.effects:
        properties["patched-target"] = _format_gvk(result.target)
    created = [effect for effect in result.effects if isinstance(effect, CreateEffect)]
    if created:
        properties["generated-resources"] = "; ".join(
            _format_gvk(ResourceRef.of(effect.resource)) for effect in created
        )
    return properties


def _cel_properties(result: RuleResult) -> JSONObject:
    """Return the binding that a result belongs to, or the position of the validation that failed."""
    detail = result.detail
    if isinstance(detail, CelDetail | AdmissionDetail) and detail.binding:
        return {_BINDINGS.get(result.rule.policy.kind, "binding"): detail.binding}
    is_policy = result.rule.policy.kind in _WITH_INDEX
    if isinstance(detail, CelDetail) and is_policy and result.status in _FAILED and detail.position >= 0:
        return {"cel.validationIndex": str(detail.position)}
    return {}


def _format_gvk(ref: ResourceRef) -> str:
    group, _, version = ref.api_version.rpartition("/")
    where = f" Namespace={ref.namespace}" if ref.namespace else ""
    return f"{group}/{version}, Kind={ref.kind} Name={ref.name}{where}"


def result_order(entry: ReportEntry) -> tuple[str | int, ...]:
    """Return the key by which results are in a report: policy, rule, source, object, time."""
    rule, ref = entry.result.rule, entry.resource
    return (
        rule.policy.key,
        entry.result.rule_name,
        rule.policy.source,
        ref.namespace,
        ref.kind,
        ref.name,
        entry.seconds,
    )
