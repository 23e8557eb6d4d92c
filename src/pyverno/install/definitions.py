"""The CustomResourceDefinitions of all policy kinds, made from their registry, and of what policies lead to.

Schemas come from the tables that decode the documents (`structural`), for `kubectl explain` and for wrong types.
Whether a policy makes sense is left to the policy webhook, whose errors are better than those of a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.install.reportdefinitions import report_definitions
from pyverno.install.structural import structural_schema
from pyverno.install.workdefinitions import work_definitions
from pyverno.kube.json import JSONObject
from pyverno.kube.reportapis import OPENREPORTS, POLICY_REPORTS
from pyverno.policy.kinds import POLICY_KINDS, Family, PolicyKind
from pyverno.policy.schema import Record

__all__ = ["definitions"]

_FAMILIES: Final = {
    Family.RULES: "rules that validate, mutate, generate or verify images",
    Family.CLEANUP: "a schedule on which matching resources are deleted",
    Family.EXCEPTION: "an exception from rules of policies",
    Family.CONTEXT: "data that rules can look up by name",
    Family.CEL: "a policy written in CEL",
    Family.CEL_EXCEPTION: "an exception from policies written in CEL",
}
_OPEN: Final[JSONObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SWITCHES: Final[JSONObject] = {
    name: {"type": "boolean", "default": True, "description": text}
    for name, text in (
        ("admission", "Whether admission requests are judged."),
        ("background", "Whether objects that exist are judged."),
    )
}
_DEMANDS: Final = "validationConfigurations"
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_LEGACY_COLUMNS: Final = (
    {"name": "Admission", "type": "boolean", "jsonPath": ".spec.admission"},
    {"name": "Background", "type": "boolean", "jsonPath": ".spec.background"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    _AGE,
    {"name": "Failure Policy", "type": "string", "jsonPath": ".spec.failurePolicy", "priority": 1},
    {"name": "Validate", "type": "integer", "jsonPath": ".status.rulecount.validate", "priority": 1},
    {"name": "Mutate", "type": "integer", "jsonPath": ".status.rulecount.mutate", "priority": 1},
    {"name": "Generate", "type": "integer", "jsonPath": ".status.rulecount.generate", "priority": 1},
    {"name": "Verify Images", "type": "integer", "jsonPath": ".status.rulecount.verifyimages", "priority": 1},
    {
        "name": "Message",
        "type": "string",
        "jsonPath": '.status.conditions[?(@.type=="Ready")].message',
    },
)
_CEL_COLUMNS: Final = (
    _AGE,
    {"name": "Ready", "type": "string", "jsonPath": ".status.conditionStatus.ready"},
)


def definitions() -> Iterator[JSONObject]:
    """Yield the definition of every policy kind that is not part of Kubernetes itself."""
    for kind in POLICY_KINDS:
        if kind.family in _FAMILIES:
            yield _definition(kind)
    yield from work_definitions()
    yield from report_definitions(POLICY_REPORTS)
    yield from report_definitions(OPENREPORTS)


def _definition(kind: PolicyKind) -> JSONObject:
    names: JSONObject = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "categories": ["kyverno"],
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "labels": {"app.kubernetes.io/part-of": "kyverno", "app.kubernetes.io/component": "crds"},
        },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind, version) for version in _stored_first(kind)],
        },
    }


def _stored_first(kind: PolicyKind) -> list[str]:
    """Return the versions in Kubernetes' order of preference: stable ones first."""
    return sorted(kind.versions, key=lambda version: (len(version) > 2, "alpha" in version, version))


def _spec(kind: PolicyKind, version: str) -> JSONObject:
    """Return the schema of a spec; a version without a decoder of its own accepts any value."""
    record = kind.decoder(version)
    found = structural_schema(record.fields["spec"].shape) if isinstance(record, Record) else dict(_OPEN)
    if kind.family is Family.RULES:
        found["properties"] = {**found.get("properties", {}), **_SWITCHES}
    if _DEMANDS in found.get("properties", {}):
        found["properties"][_DEMANDS] = _with_defaults(found["properties"][_DEMANDS])
    return {**found, "description": found.get("description") or "The desired state; validated when it is written."}


def _with_defaults(schema: JSONObject) -> JSONObject:
    """Return the schema of switches that are on by default."""
    properties = {name: {**found, "default": True} for name, found in schema["properties"].items()}
    return {**schema, "default": {}, "properties": properties}


def _version(kind: PolicyKind, version: str) -> JSONObject:
    columns = {Family.RULES: _LEGACY_COLUMNS, Family.CEL: _CEL_COLUMNS}.get(kind.family, (_AGE,))
    found: JSONObject = {
        "name": version,
        "served": True,
        "storage": version == _stored_first(kind)[0],
        "subresources": {"status": {}},
        "additionalPrinterColumns": [dict(column) for column in columns],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": f"{kind.kind} is {_FAMILIES[kind.family]}.",
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string", "description": "The version of this object's form."},
                    "kind": {"type": "string", "description": "The kind of this object."},
                    "metadata": {"type": "object"},
                    "spec": _spec(kind, version),
                    "status": {**_OPEN, "description": "What the controllers found out about the policy."},
                },
            }
        },
    }
    if version in kind.deprecated_versions:
        found["deprecated"] = True
    return found
