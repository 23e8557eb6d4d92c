"""The CustomResourceDefinitions of reports: PolicyReports of wgpolicyk8s.io and Reports of openreports.io.

Other tools write objects of these kinds as well, so the schemas also accept the fields that those tools add.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS, ReportApi

__all__ = ["report_definitions"]

_STATUSES: Final = ("pass", "fail", "warn", "error", "skip")
_TEXT: Final[JSONObject] = {"type": "string"}
_COUNT: Final[JSONObject] = {"type": "integer"}
_OPEN: Final[JSONObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_REFERENCE: Final[JSONObject] = {
    "type": "object",
    "properties": dict.fromkeys(
        ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), _TEXT
    ),
    "x-kubernetes-map-type": "atomic",
}
_SHORT: Final = {"PolicyReport": "polr", "ClusterPolicyReport": "cpolr", "Report": "reps", "ClusterReport": "creps"}
_SUBJECTS: Final = {POLICY_REPORTS.api_version: "resources", OPENREPORTS.api_version: "subjects"}


def report_definitions(api: ReportApi) -> Iterator[JSONObject]:
    """Yield the definitions of an API of reports.

    >>> [body["metadata"]["name"] for body in report_definitions(POLICY_REPORTS)]
    ['policyreports.wgpolicyk8s.io', 'clusterpolicyreports.wgpolicyk8s.io']
    """
    for gvr, kind, scope in (
        (api.namespaced, api.namespaced_kind, "Namespaced"),
        (api.cluster, api.cluster_kind, "Cluster"),
    ):
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{gvr.resource}.{gvr.group}",
                "labels": {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/component": "crds"},
            },
            "spec": {
                "group": gvr.group,
                "names": {
                    "kind": kind,
                    "listKind": f"{kind}List",
                    "plural": gvr.resource,
                    "singular": kind.lower(),
                    "shortNames": [_SHORT[kind]],
                },
                "scope": scope,
                "versions": [_version(gvr.version, kind, _SUBJECTS[api.api_version])],
            },
        }


def _version(version: str, kind: str, subjects: str) -> JSONObject:
    return {
        "name": version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": _columns(),
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": f"{kind} holds the results of policies.",
                "properties": {
                    "apiVersion": {**_TEXT, "description": "The version of this object's form."},
                    "kind": {**_TEXT, "description": "The kind of this object."},
                    "metadata": {"type": "object"},
                    "scope": {**_REFERENCE, "description": "The object of the report."},
                    "scopeSelector": _OPEN,
                    "configuration": _OPEN,
                    "source": _TEXT,
                    "summary": {
                        "type": "object",
                        "description": "The number of results of each status.",
                        "properties": dict.fromkeys(_STATUSES, _COUNT),
                    },
                    "results": {"type": "array", "description": "The result of each rule.", "items": _result(subjects)},
                },
            }
        },
    }


def _result(subjects: str) -> JSONObject:
    return {
        "type": "object",
        "required": ["policy"],
        "properties": {
            "policy": {"type": "string", "description": "The policy, as `name` or `namespace/name`."},
            "rule": {"type": "string", "description": "The rule of the policy."},
            "source": {"type": "string", "description": "The engine that gave the result."},
            "result": {"type": "string", "enum": list(_STATUSES)},
            "message": {"type": "string", "description": "The reason of the result."},
            "description": _TEXT,
            "scored": {"type": "boolean", "description": "Whether a failure counts as one."},
            "category": _TEXT,
            "severity": {"type": "string", "enum": ["critical", "high", "medium", "low", "info"]},
            "properties": {"type": "object", "additionalProperties": _TEXT},
            "timestamp": {
                "type": "object",
                "properties": {
                    "seconds": {"type": "integer", "format": "int64"},
                    "nanos": {"type": "integer", "format": "int32"},
                },
                "required": ["seconds", "nanos"],
            },
            subjects: {"type": "array", "items": _REFERENCE},
            "resourceSelector": _OPEN,
        },
    }


def _columns() -> list[JSONObject]:
    found: list[JSONObject] = [
        {"name": "Kind", "type": "string", "jsonPath": ".scope.kind"},
        {"name": "Name", "type": "string", "jsonPath": ".scope.name"},
    ]
    found += [
        {"name": status.capitalize(), "type": "integer", "jsonPath": f".summary.{status}"} for status in _STATUSES
    ]
    return [*found, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
