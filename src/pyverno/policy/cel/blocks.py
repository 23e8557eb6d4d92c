"""The pieces that documents of the CEL kinds are made of: expressions, validations, mutations, switches.

Kubernetes' admission policies and Kyverno's own kinds share them. Every CEL expression knows its path. This module must
not know any policy kind, nor compile an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.schema import Field, Record, Shape, boolean, choice, integer, list_of, set_of, text
from pyverno.policy.validate import CEL_CONDITION, AuditAnnotation, CelExpression, NamedExpression
from pyverno.value import dataclass

__all__ = [
    "AUDIT_ANNOTATIONS",
    "CONDITIONS",
    "MUTATIONS",
    "TIMEOUT",
    "VALIDATIONS",
    "VALIDATION_ACTIONS",
    "Autogen",
    "Evaluation",
    "EvaluationMode",
    "Expression",
    "Mutation",
    "PatchType",
    "ReinvocationPolicy",
    "ValidationAction",
    "annotation_expressions",
    "autogen_record",
    "evaluation_record",
    "named_expressions",
    "optional_expression",
    "validation_expressions",
]


class EvaluationMode(StrEnum):
    """The kind of input that a policy judges."""

    KUBERNETES = "Kubernetes"
    JSON = "JSON"
    ENVOY = "Envoy"
    HTTP = "HTTP"


class ValidationAction(StrEnum):
    """The effect of a failed validation on a request."""

    DENY = "Deny"
    AUDIT = "Audit"
    WARN = "Warn"


class PatchType(StrEnum):
    """The form of a mutation."""

    APPLY_CONFIGURATION = "ApplyConfiguration"
    JSON_PATCH = "JSONPatch"


class ReinvocationPolicy(StrEnum):
    """Whether mutations run again after other mutations changed the object."""

    NEVER = "Never"
    IF_NEEDED = "IfNeeded"


@dataclass(frozen=True, slots=True)
class Expression:
    """One CEL expression and its location."""

    text: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """When and on what a policy is evaluated; each kind has some of the switches only."""

    mode: EvaluationMode = EvaluationMode.KUBERNETES
    admission: bool = True
    background: bool = True
    skip_background_requests: bool = True
    mutate_existing: bool = False
    use_server_side_apply: bool = False
    generate_existing: bool = False
    synchronize: bool = False
    orphan_downstream_on_policy_delete: bool = False


@dataclass(frozen=True, slots=True)
class Autogen:
    """Objects made from a policy: copies for pod controllers (None = all of them), an admission policy."""

    pod_controllers: tuple[str, ...] | None = None
    admission_policy: bool = False


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change; only the expression that the patch type names counts."""

    patch_type: PatchType
    apply_configuration: Expression | None = None
    json_patch: Expression | None = None
    path: Path = ()

    @property
    def expression(self) -> Expression | None:
        """The expression that counts, None when it is not written (then nothing is changed)."""
        return self.apply_configuration if self.patch_type is PatchType.APPLY_CONFIGURATION else self.json_patch


def named_expressions(conditions: tuple[NamedExpression, ...]) -> Iterator[Expression]:
    """Yield the expressions of variables or conditions."""
    for each in conditions:
        yield Expression(each.expression, (*each.path, "expression"))


def validation_expressions(validations: tuple[CelExpression, ...]) -> Iterator[Expression]:
    """Yield the expressions of validations and of their messages."""
    for each in validations:
        yield Expression(each.expression, (*each.path, "expression"))
        if each.message_expression:
            yield Expression(each.message_expression, (*each.path, "messageExpression"))


def annotation_expressions(annotations: tuple[AuditAnnotation, ...]) -> Iterator[Expression]:
    """Yield the expressions of audit annotations."""
    for each in annotations:
        yield Expression(each.value_expression, (*each.path, "valueExpression"))


def _only(*, value: Any = None) -> Any:
    return value


def _wrap(name: str, shape: Shape) -> Record:
    """Return the shape of an object with one field; the value is that field's."""
    return Record(_only, Field("value", shape, json=name))


def _ignoring_none(build: Callable[..., Any]) -> Callable[..., Any]:
    """Return a builder that takes None, the value of an empty switch, as not written."""

    def built(**values: Any) -> Any:
        return build(**{name: value for name, value in values.items() if value is not None})

    return built


def optional_expression(*, path: Path, expression: str = "") -> Expression | None:
    """Return the member `expression` of the object at a path; the empty text is no expression."""
    return Expression(expression, (*path, "expression")) if expression else None


def _expression(*, path: Path, expression: str = "") -> Expression:
    """Return the member `expression` of the object at a path; an empty text does not compile."""
    return Expression(expression, (*path, "expression"))


_EXPRESSION = Record(_expression, Field("expression", text), extras=("path",))
CONDITIONS = list_of(CEL_CONDITION)
VALIDATIONS = list_of(
    Record(
        CelExpression,
        Field("expression", text, required=True),
        Field("message", text),
        Field("message_expression", text),
        Field("reason", text),
    )
)
AUDIT_ANNOTATIONS = list_of(
    Record(AuditAnnotation, Field("key", text, required=True), Field("value_expression", text, required=True))
)
MUTATIONS = list_of(
    Record(
        Mutation,
        Field("patch_type", choice(PatchType), required=True),
        Field("apply_configuration", _EXPRESSION),
        Field("json_patch", _EXPRESSION),
    )
)
TIMEOUT = _wrap("timeoutSeconds", integer)
VALIDATION_ACTIONS = set_of(choice(ValidationAction))
_SWITCH = _wrap("enabled", boolean)


def evaluation_record(*switches: str, mode: bool = True, flags: tuple[str, ...] = ()) -> Record:
    """Return the shape of `evaluation`: `switches` are objects with `enabled`, `flags` plain booleans."""
    fields = [Field(name, _SWITCH) for name in switches]
    fields += [Field(name, boolean) for name in flags]
    if mode:
        fields.append(Field("mode", choice(EvaluationMode)))
    return Record(_ignoring_none(Evaluation), *fields, extras=())


def autogen_record(admission_policy: str = "") -> Record:
    """Return the shape of `autogen`; `admission_policy` is the name of the switch for admission policies."""
    fields = [Field("pod_controllers", _wrap("controllers", list_of(text)))]
    if admission_policy:
        fields.append(Field("admission_policy", _SWITCH, json=admission_policy))
    return Record(_ignoring_none(Autogen), *fields, extras=())
