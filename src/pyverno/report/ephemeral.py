"""EphemeralReports (`reports.kyverno.io/v1`): the results for one object, at admission or in the background.

Aggregation finds them by labels and collects them into PolicyReports. (Kyverno: pkg/utils/report)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.engine.result import ResourceRef, RuleResult
from pyverno.engine.rule import PolicyInfo
from pyverno.kube.gvk import GVK, GVR, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.policy.kinds import find_kind
from pyverno.report.objectmark import MARK
from pyverno.report.policyreport import ReportEntry, plain_result, result_order
from pyverno.report.summary import Summary
from pyverno.value import dataclass

__all__ = [
    "EPHEMERAL_REPORTS",
    "REPORT_GROUP",
    "ReportParts",
    "Reported",
    "admission_report",
    "background_report",
    "policy_label",
]

REPORT_GROUP = "reports.kyverno.io"
EPHEMERAL_REPORTS = (
    GVR(REPORT_GROUP, "v1", "ephemeralreports"),
    GVR(REPORT_GROUP, "v1", "clusterephemeralreports"),
)
"""Reports about objects of namespaces, and about the others."""

_PREFIX = "audit.kyverno.io/"
_LABEL_LENGTH = 63
_NO_RESOURCE = ResourceRef("", "", "", "")


@dataclass(frozen=True, slots=True)
class Reported:
    """The subject of a report: the object with its uid ("" = none yet), its resource and kind, the request's uid.

    `gvk` and `gvr` are those of the request, `resource` is the object itself. The object has to fit the `mark`.
    """

    resource: ResourceRef
    uid: str
    gvk: GVK
    gvr: GVR
    request_uid: str
    mark: str = ""


def policy_label(policy: PolicyInfo) -> str:
    """Return the label by which reports on a policy are found; "" for a name that is too long.

    >>> from pyverno.engine.rule import Family
    >>> policy_label(PolicyInfo("ClusterPolicy", "kyverno.io/v1", "check-ports", Family.RULES))
    'cpol.kyverno.io/check-ports'
    """
    row = find_kind(policy.api_version.partition("/")[0], policy.kind)
    if row is None:
        return ""
    return f"{row.label}/{policy.name}" if len(policy.name) <= _LABEL_LENGTH else ""


class ReportParts:
    """The common part of reports on the same results, whatever the object and the time."""

    __slots__ = ("_items", "_policies", "summary")

    def __init__(self, results: Sequence[RuleResult]) -> None:
        """Take the results of one report."""
        ordered = sorted((ReportEntry(result, _NO_RESOURCE, 0) for result in results), key=result_order)
        self._items = tuple(plain_result(entry.result, 0) for entry in ordered)
        self._policies: dict[str, PolicyInfo] = {}
        for result in results:
            self._policies.setdefault(policy_label(result.rule.policy), result.rule.policy)
        self.summary = Summary.of(results).to_json()

    def items(self, seconds: int) -> list[JSONObject]:
        """Return the results as items, at a time in seconds since the Unix epoch."""
        timestamp = {"seconds": seconds, "nanos": 0}
        return [{**item, "timestamp": timestamp} for item in self._items]

    def labels(self, version_of: Callable[[PolicyInfo], str]) -> JSONObject:
        """Return a label for each policy with its version."""
        return {label: version_of(policy) for label, policy in self._policies.items() if label}


def admission_report(
    about: Reported,
    results: Sequence[RuleResult] | ReportParts,
    seconds: int,
    *,
    version_of: Callable[[PolicyInfo], str] = lambda _: "",
) -> JSONObject:
    """Return the report on results of one request, at a time in seconds since the Unix epoch.

    `version_of` gives the resource version of a policy, "" when it is not known.
    """
    labels = {**_labels(about.uid, about.gvk, "admission"), **_resource_label(about.gvr)}
    metadata: JSONObject = {"generateName": f"{about.request_uid}-", "labels": labels}
    if about.mark:
        metadata["annotations"] = {MARK: about.mark}
    parts = results if isinstance(results, ReportParts) else ReportParts(results)
    return _report(about.resource, metadata, parts, seconds, version_of)


def background_report(
    resource: ResourceRef,
    uid: str,
    results: Sequence[RuleResult],
    seconds: int,
    *,
    version_of: Callable[[PolicyInfo], str] = lambda _: "",
) -> JSONObject:
    """Return the report on background results for an object; the object owns it."""
    gvk = GVK(*parse_api_version(resource.api_version), resource.kind)
    owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": resource.name, "uid": uid}
    metadata: JSONObject = {
        "generateName": f"{uid}-",
        "labels": _labels(uid, gvk, "background-scan"),
        "ownerReferences": [owner],
    }
    return _report(resource, metadata, ReportParts(results), seconds, version_of)


def _report(
    resource: ResourceRef,
    metadata: JSONObject,
    parts: ReportParts,
    seconds: int,
    version_of: Callable[[PolicyInfo], str],
) -> JSONObject:
    metadata = {
        **metadata,
        "labels": {**metadata["labels"], **parts.labels(version_of)},
        "annotations": {
            **metadata.get("annotations", {}),
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
            "summary": parts.summary,
            "results": parts.items(seconds),
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
        # COMPAT: Kyverno writes the plural where a reader expects the name of the object
        return {f"{_PREFIX}resource.name": gvr.resource}
    return {f"{_PREFIX}resource.gvr": ".".join(part for part in (gvr.resource, gvr.version, gvr.group) if part)}
