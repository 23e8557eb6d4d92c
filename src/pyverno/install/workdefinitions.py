"""The CustomResourceDefinitions of objects that controllers pass to each other: UpdateRequests and ephemeral reports.

They are not policies, and only controllers write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.install.structural import structural_schema
from pyverno.kube.json import JSONObject
from pyverno.policy.schema import Record
from pyverno.policy.updaterequest import UPDATE_REQUEST

__all__ = ["work_definitions"]

_OPEN: Final[JSONObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT: Final[JSONObject] = {"type": "string"}
_COUNT: Final[JSONObject] = {"type": "integer"}
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_STATUSES: Final = ("pass", "fail", "warn", "error", "skip")
_LABELS: Final = "audit\\.kyverno\\.io"


def work_definitions() -> Iterator[JSONObject]:
    """Yield the definitions, each with one served version.

    >>> [body["spec"]["names"]["kind"] for body in work_definitions()]
    ['UpdateRequest', 'EphemeralReport', 'ClusterEphemeralReport']
    """
    yield _definition(
        "kyverno.io",
        {"kind": "UpdateRequest", "plural": "updaterequests", "shortNames": ["ur"]},
        "Namespaced",
        _version("v2", "UpdateRequest is work for the background controller.", _work(), _WORK_COLUMNS, _WORK_STATUS),
        # Kyverno: clusters that ran an old version name it in status.storedVersions, so it cannot be removed
        _unserved_version("v1beta1", "UpdateRequest in a version that is not served any more."),
    )
    for kind, plural, short, scope in (
        ("EphemeralReport", "ephemeralreports", "ephr", "Namespaced"),
        ("ClusterEphemeralReport", "clusterephemeralreports", "cephr", "Cluster"),
    ):
        text = f"{kind} holds the results of policies for one object at one moment."
        yield _definition(
            "reports.kyverno.io",
            {"kind": kind, "plural": plural, "shortNames": [short]},
            scope,
            _version("v1", text, _report(), _REPORT_COLUMNS),
        )


def _definition(group: str, names: JSONObject, scope: str, *versions: JSONObject) -> JSONObject:
    kind = names["kind"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names['plural']}.{group}",
            "labels": {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/component": "crds"},
        },
        "spec": {
            "group": group,
            "names": {"listKind": f"{kind}List", "singular": kind.lower(), "categories": ["kyverno"], **names},
            "scope": scope,
            "versions": list(versions),
        },
    }


def _version(
    name: str, text: str, spec: JSONObject, columns: Sequence[JSONObject], status: JSONObject | None = None
) -> JSONObject:
    properties: JSONObject = {
        "apiVersion": {"type": "string", "description": "The version of this object's form."},
        "kind": {"type": "string", "description": "The kind of this object."},
        "metadata": {"type": "object"},
        "spec": spec,
    }
    found: JSONObject = {
        "name": name,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [*(dict(column) for column in columns), dict(_AGE)],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": text,
                "required": ["spec"],
                "properties": properties,
            }
        },
    }
    if status is not None:
        properties["status"] = status
        found["subresources"] = {"status": {}}
    return found


def _unserved_version(name: str, text: str) -> JSONObject:
    schema: JSONObject = {**_OPEN, "description": text}
    return {"name": name, "served": False, "storage": False, "schema": {"openAPIV3Schema": schema}}


def _work() -> JSONObject:
    shape = UPDATE_REQUEST.fields["spec"].shape
    found = structural_schema(shape) if isinstance(shape, Record) else dict(_OPEN)
    return {**found, "description": "What is to be done, for which policy, and on whose account."}


_WORK_STATUS: Final[JSONObject] = {
    "type": "object",
    "description": "How far the work is.",
    "properties": {
        "state": {"type": "string", "description": "Pending, Failed, Completed or Skip."},
        "message": {"type": "string", "description": "Why it is so."},
        "retryCount": {"type": "integer", "description": "How often the work failed."},
        "conditions": {
            "type": "array",
            "description": "Why the work is not completed.",
            "items": {
                "type": "object",
                "properties": dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), _TEXT),
            },
        },
        "generatedResources": {
            "type": "array",
            "description": "The objects that were made.",
            "items": {
                "type": "object",
                "properties": dict.fromkeys(("apiVersion", "kind", "namespace", "name", "uid"), _TEXT),
            },
        },
    },
    "required": ["state"],
}
_WORK_COLUMNS: Final[tuple[JSONObject, ...]] = tuple(
    {"name": name, "type": "string", "jsonPath": path}
    for name, path in (
        ("Policy", ".spec.policy"),
        ("RuleType", ".spec.requestType"),
        ("ResourceKind", ".spec.resource.kind"),
        ("ResourceName", ".spec.resource.name"),
        ("ResourceNamespace", ".spec.resource.namespace"),
        ("status", ".status.state"),
    )
)


def _report() -> JSONObject:
    owner = dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT)
    return {
        "type": "object",
        "description": "The results and their object.",
        "required": ["owner"],
        "properties": {
            "owner": {
                "type": "object",
                "description": "The object of the report.",
                "properties": {**owner, "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}},
                "required": list(owner),
            },
            "summary": {
                "type": "object",
                "description": "How many results there are of each kind.",
                "properties": dict.fromkeys(_STATUSES, _COUNT),
            },
            "results": {"type": "array", "description": "The result of each rule.", "items": _result()},
        },
    }


def _result() -> JSONObject:
    return {
        "type": "object",
        "required": ["policy"],
        "properties": {
            "policy": {"type": "string", "description": "The policy, as `name` or `namespace/name`."},
            "rule": {"type": "string", "description": "The rule, where the policy has several."},
            "source": {"type": "string", "description": "The engine that evaluated the policies."},
            "result": {"type": "string", "enum": list(_STATUSES)},
            "message": {"type": "string", "description": "Why."},
            "scored": {"type": "boolean", "description": "Whether a fail counts as a fail."},
            "category": _TEXT,
            "severity": {"type": "string", "enum": ["critical", "high", "medium", "low", "info"]},
            "properties": {"type": "object", "additionalProperties": _TEXT},
            "timestamp": {
                "type": "object",
                "description": "When, since 1970.",
                "properties": {"seconds": {"type": "integer", "format": "int64"}, "nanos": _COUNT},
                "required": ["seconds", "nanos"],
            },
            "resources": {"type": "array", "items": _OPEN},
            "resourceSelector": _OPEN,
        },
    }


_REPORT_COLUMNS: Final[tuple[JSONObject, ...]] = (
    {"name": "Source", "type": "string", "jsonPath": f".metadata.labels['{_LABELS}/source']"},
    {"name": "Group", "type": "string", "jsonPath": f".metadata.labels['{_LABELS}/resource\\.group']"},
    {"name": "Kind", "type": "string", "jsonPath": f".metadata.labels['{_LABELS}/resource\\.kind']"},
    {"name": "Owner", "type": "string", "jsonPath": f".metadata.annotations['{_LABELS}/resource\\.name']"},
    *({"name": status.capitalize(), "type": "integer", "jsonPath": f".spec.summary.{status}"} for status in _STATUSES),
    {"name": "Uid", "type": "string", "jsonPath": f".metadata.labels['{_LABELS}/resource\\.uid']", "priority": 1},
    {"name": "Hash", "type": "string", "jsonPath": f".metadata.labels['{_LABELS}/resource\\.hash']", "priority": 1},
)
