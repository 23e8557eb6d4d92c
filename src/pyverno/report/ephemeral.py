"""EphemeralReports (`reports.kyverno.io/v1`): the results for one object, at admission or in the background.

Aggregation finds them by labels and collects them into PolicyReports. (Kyverno: pkg/utils/report)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import find_kind
from pyverno.report.policyreport import ReportEntry, plain_result, result_order
from pyverno.report.summary import Summary
from pyverno.value import dataclass

__all__ = ["EPHEMERAL_REPORTS", "REPORT_GROUP", "Reported", "admission_report", "background_report", "policy_label"]

REPORT_GROUP = "reports.kyverno.io"
EPHEMERAL_REPORTS = (
    GVR(REPORT_GROUP, "v1", "ephemeralreports"),
    GVR(REPORT_GROUP, "v1", "clusterephemeralreports"),
)
"""Reports about objects of namespaces, and about the others."""

_PREFIX = "audit.kyverno.io/"
_LABEL_LENGTH = 63


@dataclass(frozen=True, slots=True)
class Reported:
    """The subject of a report: the object with its uid ("" = none yet), its resource and kind, the request's uid.

    `gvk` and `gvr` are those of the request, `resource` is the object itself.
    """

    resource: ResourceRef
    uid: str
    gvk: GVK
    gvr: GVR
    request_uid: str


def policy_label(policy: PolicyInfo) -> str:
    """Return the label by which reports on a policy are found; "" where its name is too long for one.

    >>> from pyverno.engine.rule import Family
    >>> policy_label(PolicyInfo("ClusterPolicy", "kyverno.io/v1", "check-ports", Family.RULES))
    'cpol.kyverno.io/check-ports'
    """
    row = find_kind(policy.api_version.partition("/")[0], policy.kind)
    if row is None:
        return ""
    return f"{row.label}/{policy.name}" if len(policy.name) <= _LABEL_LENGTH else ""


def admission_report(
    about: Reported,
    results: Sequence[RuleResult],
    seconds: int,
    *,
    version_of: Callable[[PolicyInfo], str] = lambda _: "",
) -> JSONObject:
    """Return the report on results of one request, at a time in seconds since the Unix epoch.

    `version_of` gives the resource version of a policy, "" when it is not known.
    """
    labels = {**_labels(about.uid, about.gvk, "admission"), **_resource_label(about.gvr)}
    metadata: JSONObject = {"generateName": f"{about.request_uid}-", "labels": labels}
    return _report(about.resource, metadata, results, seconds, version_of)


def background_report(
    resource: ResourceRef,
    uid: str,
    results: Sequence[RuleResult],
    seconds: int,
    *,
    version_of: Callable[[PolicyInfo], str] = lambda _: "",
) -> JSONObject:
    """Return the report on results for an object that rules worked on in the background; the object owns it."""
    gvk = GVK(*parse_api_version(resource.api_version), resource.kind)
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": resource.name, "uid": uid}
    metadata: JSONObject = {
        "generateName": f"{uid}-",
        "labels": _labels(uid, gvk, "background-scan"),
        "ownerReferences": [owner],
    }
    return _report(resource, metadata, results, seconds, version_of)


def _report(
    resource: ResourceRef,
    metadata: JSONObject,
    results: Sequence[RuleResult],
    seconds: int,
    version_of: Callable[[PolicyInfo], str],
) -> JSONObject:
    ordered = sorted((ReportEntry(result, resource, seconds) for result in results), key=result_order)
    policies = _policy_labels((result.rule.policy for result in results), version_of)
    metadata = {
        **metadata,
        "labels": {**metadata["labels"], **policies},
        "annotations": {
            f"{_PREFIX}resource.namespace": resource.namespace,
            f"{_PREFIX}resource.name": resource.name,
        },
    }
    if resource.namespace:
        metadata["namespace"] = resource.namespace
    return {
        "apiVersion": f"{REPORT_GROUP}/v1",
        "kind": "EphemeralReport" if resource.namespace else "ClusterEphemeralReport",
        "metadata": metadata,
        "spec": {
            # COMPAT: aggregation makes the object the owner in the metadata; this field is never filled
            "owner": {"apiVersion": "", "kind": "", "name": "", "uid": ""},
            "summary": Summary.of(entry.result for entry in ordered).to_json(),
            "results": [plain_result(entry.result, seconds) for entry in ordered],
        },
    }


def _labels(uid: str, gvk: GVK, source: str) -> JSONObject:
    return {
        f"{_PREFIX}resource.uid": uid,
        f"{_PREFIX}resource.group": gvk.group,
        f"{_PREFIX}resource.version": gvk.version,
        f"{_PREFIX}resource.kind": gvk.kind,
        f"{_PREFIX}source": source,
        "app.kubernetes.io/managed-by": "kyverno",
    }


def _resource_label(gvr: GVR) -> JSONObject:
    if len(f"{gvr.resource}.{gvr.version}.{gvr.group}") > _LABEL_LENGTH:
        # COMPAT: Kyverno puts the plural where the name of the object would be looked for
        return {f"{_PREFIX}resource.name": gvr.resource}
    return {f"{_PREFIX}resource.gvr": ".".join(part for part in (gvr.resource, gvr.version, gvr.group) if part)}


def _policy_labels(policies: Iterable[PolicyInfo], version_of: Callable[[PolicyInfo], str]) -> JSONObject:
    found: JSONObject = {}
    for policy in policies:
        label = policy_label(policy)
        if label and label not in found:
            found[label] = version_of(policy)
    return found
