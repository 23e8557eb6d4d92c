"""The `validate` block of a rule, as written.

Patterns and conditions stay plain JSON. This module must not evaluate anything.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.context import CONTEXT, ContextEntry
from pyverno.policy.deny import DENY, Deny
from pyverno.policy.failureaction import FAILURE_ACTION, OVERRIDE, FailureAction, FailureActionOverride
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Cursor, Field, Record, boolean, choice, free, list_of, text
from pyverno.policy.verifyimages import ATTESTORS, AttestorSet
from pyverno.value import dataclass, field

__all__ = [
    "CEL_CONDITION",
    "POD_SECURITY_EXCLUDE",
    "VALIDATE",
    "AuditAnnotation",
    "Cel",
    "CelExpression",
    "Manifests",
    "NamedExpression",
    "PodSecurity",
    "PodSecurityExclude",
    "Validate",
    "ValidateForeach",
]


@dataclass(frozen=True, slots=True)
class ValidateForeach:
    """A check of every element of a list; `elements` is the JMESPath expression of `list`."""

    elements: str = ""
    element_scope: bool | None = None
    context: tuple[ContextEntry, ...] = ()
    preconditions: JSON = None
    pattern: JSON = None
    any_pattern: JSON = None
    deny: Deny | None = None
    foreach: tuple[ValidateForeach, ...] = ()
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


class PodSecurityLevel(StrEnum):
    """A Pod Security Standard."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


@dataclass(frozen=True, slots=True)
class PodSecurityExclude:
    """A control that is not applied, for some images or for some values of a field."""

    control_name: str
    images: tuple[str, ...] = ()
    restricted_field: str = ""
    values: tuple[str, ...] = ()
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodSecurity:
    """A Pod Security Standard and its exclusions."""

    level: PodSecurityLevel | None = None
    version: str = ""
    exclude: tuple[PodSecurityExclude, ...] = ()


@dataclass(frozen=True, slots=True)
class DryRun:
    """Whether a signed manifest is applied in dry-run mode before it is compared."""

    enable: bool = False
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Manifests:
    """A check of manifest signatures; `ignore_fields` stays plain JSON."""

    attestors: tuple[AttestorSet, ...] = ()
    annotation_domain: str = ""
    ignore_fields: tuple[JSONObject, ...] = ()
    dry_run: DryRun = field(default_factory=DryRun)
    repository: str = ""


@dataclass(frozen=True, slots=True)
class CelExpression:
    """One CEL validation."""

    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class NamedExpression:
    """A named CEL expression: a variable, a match condition or a precondition."""

    name: str
    expression: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class AuditAnnotation:
    """A CEL expression whose value is recorded."""

    key: str
    value_expression: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Cel:
    """CEL validations as in a ValidatingAdmissionPolicy; `param_kind` and `param_ref` stay plain JSON."""

    generate: bool = False
    expressions: tuple[CelExpression, ...] = ()
    param_kind: JSONObject | None = None
    param_ref: JSONObject | None = None
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    variables: tuple[NamedExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Validate:
    """A check; exactly one of its forms is meant to be set. `assertion` does nothing, as since Kyverno 1.19."""

    message: str = ""
    failure_action: FailureAction | None = None
    failure_action_overrides: tuple[FailureActionOverride, ...] = ()
    allow_existing_violations: bool = True
    pattern: JSON = None
    any_pattern: JSON = None
    deny: Deny | None = None
    foreach: tuple[ValidateForeach, ...] = ()
    pod_security: PodSecurity | None = None
    manifests: Manifests | None = None
    cel: Cel | None = None
    assertion: JSON = None
    path: Path = ()
    raw: JSONObject = field(default_factory=dict)


def _foreach_list(value: JSON, cursor: Cursor) -> Any:
    return list_of(_FOREACH)(value, cursor)


def _plain(record: Record) -> Any:
    def shape(value: JSON, cursor: Cursor) -> JSON:
        record(value, cursor)
        return value

    return shape


_FOREACH = Record(
    ValidateForeach,
    Field("elements", text, json="list"),
    Field("element_scope", boolean),
    Field("context", CONTEXT),
    Field("preconditions", free),
    Field("pattern", free),
    Field("any_pattern", free),
    Field("deny", DENY),
    Field("foreach", _foreach_list),
)

POD_SECURITY_EXCLUDE = Record(
    PodSecurityExclude,
    Field("control_name", text, required=True),
    Field("images", list_of(text)),
    Field("restricted_field", text),
    Field("values", list_of(text)),
)

_POD_SECURITY = Record(
    PodSecurity,
    Field("level", choice(PodSecurityLevel)),
    Field("version", text),
    Field("exclude", list_of(POD_SECURITY_EXCLUDE)),
)

_IGNORED_OBJECT = Record(dict, *(Field(name, text) for name in ("group", "kind", "name", "namespace", "version")))

_MANIFESTS = Record(
    Manifests,
    Field("attestors", ATTESTORS),
    Field("annotation_domain", text),
    Field(
        "ignore_fields",
        list_of(
            _plain(Record(dict, Field("fields", list_of(text)), Field("objects", list_of(_IGNORED_OBJECT)))),
        ),
    ),
    Field("dry_run", Record(DryRun, Field("enable", boolean), Field("namespace", text))),
    Field("repository", text),
)

CEL_CONDITION = Record(NamedExpression, Field("name", text, required=True), Field("expression", text, required=True))

_CEL = Record(
    Cel,
    Field("generate", boolean),
    Field(
        "expressions",
        list_of(
            Record(
                CelExpression,
                Field("expression", text, required=True),
                Field("message", text),
                Field("message_expression", text),
                Field("reason", text),
            )
        ),
    ),
    Field("param_kind", _plain(Record(dict, Field("api_version", text), Field("kind", text)))),
    Field(
        "param_ref",
        _plain(
            Record(
                dict,
                Field("name", text),
                Field("namespace", text),
                Field("parameter_not_found_action", text),
                Field("selector", label_selector),
            )
        ),
    ),
    Field(
        "audit_annotations",
        list_of(
            Record(
                AuditAnnotation,
                Field("key", text, required=True),
                Field("value_expression", text, required=True),
            )
        ),
    ),
    Field("variables", list_of(CEL_CONDITION)),
)

VALIDATE = Record(
    Validate,
    Field("message", text),
    Field("failure_action", FAILURE_ACTION),
    Field("failure_action_overrides", list_of(OVERRIDE)),
    Field("allow_existing_violations", boolean),
    Field("pattern", free),
    Field("any_pattern", free),
    Field("deny", DENY),
    Field("foreach", list_of(_FOREACH)),
    Field("pod_security", _POD_SECURITY),
    Field("manifests", _MANIFESTS),
    Field("cel", _CEL),
    Field("assertion", free, json="assert"),
)
