"""ValidatingPolicy, MutatingPolicy, GeneratingPolicy and DeletingPolicy, as written (`policies.kyverno.io`).

All versions share one schema. A Namespaced twin is the same dataclass with `is_namespaced`. Every CEL expression knows
its path. This module must not compile an expression or expand anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.cel.blocks import (
    AUDIT_ANNOTATIONS,
    CONDITIONS,
    MUTATIONS,
    TIMEOUT,
    VALIDATION_ACTIONS,
    VALIDATIONS,
    Autogen,
    Evaluation,
    Expression,
    Mutation,
    ReinvocationPolicy,
    ValidationAction,
    annotation_expressions,
    autogen_record,
    evaluation_record,
    named_expressions,
    optional_expression,
    validation_expressions,
)
from pyverno.policy.cel.constraints import CONSTRAINT_FIELDS, CONSTRAINTS, MatchConstraints
from pyverno.policy.cleanup import PropagationPolicy
from pyverno.policy.clusterpolicy import FailurePolicy
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.schema import Field, Record, boolean, choice, list_of, text
from pyverno.policy.validate import AuditAnnotation, CelExpression, NamedExpression
from pyverno.value import dataclass, field

if TYPE_CHECKING:
    from pyverno.policy.cel.copies import AutogenConfig

__all__ = [
    "COMMON_FIELDS",
    "DELETING_POLICY",
    "GENERATING_POLICY",
    "JUDGING_FIELDS",
    "MUTATING_POLICY",
    "MUTATING_SPEC",
    "VALIDATING_POLICY",
    "VALIDATING_SPEC",
    "CelPolicy",
    "CelSpec",
    "DeletingPolicy",
    "DeletingSpec",
    "GeneratingPolicy",
    "GeneratingSpec",
    "Generation",
    "MutatingPolicy",
    "MutatingSpec",
    "TargetConstraints",
    "ValidatingPolicy",
    "ValidatingSpec",
]


@dataclass(frozen=True, slots=True)
class TargetConstraints:
    """The existing resources to mutate: constraints, or an expression that returns them."""

    constraints: MatchConstraints = field(default_factory=MatchConstraints)
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """One generate entry: an expression, or the text of a YAML template with or without `(( ))` placeholders."""

    expression: Expression | None = None
    template: str | None = None
    is_interpolated: bool = False
    path: Path = ()

    @property
    def template_path(self) -> Path:
        """The place of the template's text."""
        return (*self.path, "template", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class CelSpec:
    """The common part of the specs of the CEL kinds."""

    match_constraints: MatchConstraints | None = None
    match_conditions: tuple[NamedExpression, ...] = ()
    variables: tuple[NamedExpression, ...] = ()
    failure_policy: FailurePolicy = FailurePolicy.FAIL
    timeout_seconds: int | None = None
    evaluation: Evaluation = field(default_factory=Evaluation)
    raw: JSONObject = field(default_factory=dict)

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path (those within templates are not looked at)."""
        yield from named_expressions(self.match_conditions)
        yield from named_expressions(self.variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingSpec(CelSpec):
    """The spec of a ValidatingPolicy; no validation actions mean Deny (see `actions`)."""

    validations: tuple[CelExpression, ...] = ()
    validation_actions: tuple[ValidationAction, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    autogen: Autogen = field(default_factory=Autogen)

    @property
    def actions(self) -> tuple[ValidationAction, ...]:
        """The effects of a failed validation; the default is Deny."""
        return self.validation_actions or (ValidationAction.DENY,)

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from CelSpec.expressions(self)
        yield from validation_expressions(self.validations)
        yield from annotation_expressions(self.audit_annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingSpec(CelSpec):
    """The spec of a MutatingPolicy."""

    mutations: tuple[Mutation, ...] = ()
    target_match_constraints: TargetConstraints | None = None
    target_match_conditions: tuple[NamedExpression, ...] = ()
    reinvocation_policy: ReinvocationPolicy = ReinvocationPolicy.NEVER
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    autogen: Autogen = field(default_factory=Autogen)

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from CelSpec.expressions(self)
        yield from (each.expression for each in self.mutations if each.expression is not None)
        targets = self.target_match_constraints
        if targets is not None and targets.expression is not None:
            yield targets.expression
        yield from named_expressions(self.target_match_conditions)
        yield from annotation_expressions(self.audit_annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratingSpec(CelSpec):
    """The spec of a GeneratingPolicy, which has no failurePolicy."""

    generate: tuple[Generation, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    use_server_side_apply: bool = False

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path (those within templates are not looked at)."""
        yield from CelSpec.expressions(self)
        yield from (each.expression for each in self.generate if each.expression is not None)
        yield from annotation_expressions(self.audit_annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletingSpec(CelSpec):
    """The spec of a DeletingPolicy: only matchConstraints and variables of the common block."""

    schedule: str
    conditions: tuple[NamedExpression, ...] = ()
    deletion_propagation_policy: PropagationPolicy | None = None

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from CelSpec.expressions(self)
        yield from named_expressions(self.conditions)


@dataclass(frozen=True, slots=True, kw_only=True)
class CelPolicy(PolicyDocument):
    """A document of a CEL kind; `document` locates everything in it, `copies` are those of autogen, once compiled."""

    spec: CelSpec
    copies: tuple[AutogenConfig[CelPolicy], ...] | None = field(default=None, repr=False, compare=False)

    @property
    def is_namespaced(self) -> bool:
        """Return whether this policy sees its own namespace only."""
        return self.kind.startswith("Namespaced")

    @property
    def key(self) -> str:
        """Return the name that reports use: `name`, or `namespace/name` for a namespaced policy."""
        return f"{self.namespace}/{self.name}" if self.is_namespaced and self.namespace else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingPolicy(CelPolicy):
    """A ValidatingPolicy or NamespacedValidatingPolicy."""

    spec: ValidatingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingPolicy(CelPolicy):
    """A MutatingPolicy or NamespacedMutatingPolicy."""

    spec: MutatingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratingPolicy(CelPolicy):
    """A GeneratingPolicy or NamespacedGeneratingPolicy."""

    spec: GeneratingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletingPolicy(CelPolicy):
    """A DeletingPolicy or NamespacedDeletingPolicy."""

    spec: DeletingSpec


def _target_constraints(*, path: Path, raw: JSONObject, expression: str = "", **values: Any) -> TargetConstraints:
    constraints = MatchConstraints(path=path, raw=raw, **values)
    return TargetConstraints(constraints, optional_expression(path=path, expression=expression))


class _Interpolation(StrEnum):
    NONE = "none"
    CEL = "cel"


def _generation(*, path: Path, expression: str = "", template: Mapping[str, Any] | None = None, **_: Any) -> Generation:
    return Generation(
        expression=optional_expression(path=path, expression=expression),
        template=None if template is None else template["value"],
        is_interpolated=template is not None and template.get("interpolate") is _Interpolation.CEL,
        path=path,
    )


_GENERATIONS = list_of(
    Record(
        _generation,
        Field("expression", text),
        Field(
            "template",
            Record(dict, Field("value", text, required=True), Field("interpolate", choice(_Interpolation)), extras=()),
        ),
        extras=("path",),
    )
)

COMMON_FIELDS = (
    Field("match_constraints", CONSTRAINTS),
    Field("match_conditions", CONDITIONS),
    Field("variables", CONDITIONS),
    Field("timeout_seconds", TIMEOUT, json="webhookConfiguration"),
)
_AUDIT_ANNOTATIONS = Field("audit_annotations", AUDIT_ANNOTATIONS)
JUDGING_FIELDS = (Field("failure_policy", choice(FailurePolicy)), _AUDIT_ANNOTATIONS)

VALIDATING_SPEC = Record(
    ValidatingSpec,
    *COMMON_FIELDS,
    *JUDGING_FIELDS,
    Field("validations", VALIDATIONS),
    Field("validation_actions", VALIDATION_ACTIONS),
    Field("evaluation", evaluation_record("admission", "background")),
    Field("autogen", autogen_record("validatingAdmissionPolicy")),
)

MUTATING_SPEC = Record(
    MutatingSpec,
    *COMMON_FIELDS,
    *JUDGING_FIELDS,
    Field("mutations", MUTATIONS),
    Field(
        "target_match_constraints",
        Record(_target_constraints, Field("expression", text), *CONSTRAINT_FIELDS, extras=("path", "raw")),
    ),
    Field("target_match_conditions", CONDITIONS),
    Field("reinvocation_policy", choice(ReinvocationPolicy)),
    Field(
        "evaluation",
        evaluation_record(
            "admission",
            "background",
            "mutate_existing",
            flags=("skip_background_requests", "use_server_side_apply"),
        ),
    ),
    Field("autogen", autogen_record("mutatingAdmissionPolicy")),
)

_GENERATING_SPEC = Record(
    GeneratingSpec,
    *COMMON_FIELDS,
    _AUDIT_ANNOTATIONS,
    Field("generate", _GENERATIONS, required=True),
    Field("use_server_side_apply", boolean),
    Field(
        "evaluation",
        evaluation_record(
            "admission",
            "generate_existing",
            "synchronize",
            "orphan_downstream_on_policy_delete",
            mode=False,
            flags=("skip_background_requests",),
        ),
    ),
)

_DELETING_SPEC = Record(
    DeletingSpec,
    Field("match_constraints", CONSTRAINTS),
    Field("variables", CONDITIONS),
    Field("schedule", text, required=True),
    Field("conditions", CONDITIONS),
    Field("deletion_propagation_policy", choice(PropagationPolicy)),
)

VALIDATING_POLICY = policy_record(ValidatingPolicy, VALIDATING_SPEC)
MUTATING_POLICY = policy_record(MutatingPolicy, MUTATING_SPEC)
GENERATING_POLICY = policy_record(GeneratingPolicy, _GENERATING_SPEC)
DELETING_POLICY = policy_record(DeletingPolicy, _DELETING_SPEC)
