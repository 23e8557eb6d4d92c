"""Kubernetes' ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings, as written.

All versions share one schema. Defaults of the API server are not filled in: an absent failurePolicy reads as Fail, and
matching handles the others. This module must not compile an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeAlias

from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.cel.blocks import (
    AUDIT_ANNOTATIONS,
    CONDITIONS,
    MUTATIONS,
    VALIDATION_ACTIONS,
    VALIDATIONS,
    Expression,
    Mutation,
    ReinvocationPolicy,
    ValidationAction,
    annotation_expressions,
    named_expressions,
    validation_expressions,
)
from pyverno.policy.cel.constraints import CONSTRAINTS, MatchConstraints
from pyverno.policy.clusterpolicy import FailurePolicy
from pyverno.policy.document import PolicyDocument, policy_record
from pyverno.policy.match import label_selector
from pyverno.policy.schema import Field, Record, choice, text
from pyverno.policy.validate import AuditAnnotation, CelExpression, NamedExpression
from pyverno.value import dataclass, field

__all__ = [
    "MUTATING_ADMISSION_POLICY",
    "MUTATING_ADMISSION_POLICY_BINDING",
    "VALIDATING_ADMISSION_POLICY",
    "VALIDATING_ADMISSION_POLICY_BINDING",
    "AdmissionBinding",
    "AdmissionPolicy",
    "AdmissionSpec",
    "BindingSpec",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionSpec",
    "ParamKind",
    "ParamRef",
    "ParameterNotFoundAction",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionSpec",
]


class ParameterNotFoundAction(StrEnum):
    """The behaviour of a binding without any parameter."""

    ALLOW = "Allow"
    DENY = "Deny"


@dataclass(frozen=True, slots=True)
class ParamKind:
    """The kind of the parameters of a policy."""

    api_version: str = ""
    kind: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The parameters that a binding uses, by name or by label selector (plain JSON, None = not written)."""

    name: str = ""
    namespace: str = ""
    selector: JSONObject | None = None
    parameter_not_found_action: ParameterNotFoundAction | None = None
    path: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSpec:
    """The common part of the specs of both policy kinds."""

    match_constraints: MatchConstraints | None = None
    match_conditions: tuple[NamedExpression, ...] = ()
    variables: tuple[NamedExpression, ...] = ()
    param_kind: ParamKind | None = None
    failure_policy: FailurePolicy = FailurePolicy.FAIL
    raw: JSONObject = field(default_factory=dict)

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from named_expressions(self.match_conditions)
        yield from named_expressions(self.variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingAdmissionSpec(AdmissionSpec):
    """The spec of a ValidatingAdmissionPolicy."""

    validations: tuple[CelExpression, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from AdmissionSpec.expressions(self)
        yield from validation_expressions(self.validations)
        yield from annotation_expressions(self.audit_annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingAdmissionSpec(AdmissionSpec):
    """The spec of a MutatingAdmissionPolicy; the API server requires a reinvocation policy, here it may be absent."""

    mutations: tuple[Mutation, ...] = ()
    reinvocation_policy: ReinvocationPolicy = ReinvocationPolicy.NEVER

    def expressions(self) -> Iterator[Expression]:
        """Yield every expression with its path."""
        yield from AdmissionSpec.expressions(self)
        yield from (each.expression for each in self.mutations if each.expression is not None)


@dataclass(frozen=True, slots=True)
class BindingSpec:
    """The spec of a binding; only those of validating policies have validation actions."""

    policy_name: str
    param_ref: ParamRef | None = None
    match_resources: MatchConstraints | None = None
    validation_actions: tuple[ValidationAction, ...] = ()
    raw: JSONObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingAdmissionPolicy(PolicyDocument):
    """A ValidatingAdmissionPolicy."""

    spec: ValidatingAdmissionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingAdmissionPolicy(PolicyDocument):
    """A MutatingAdmissionPolicy."""

    spec: MutatingAdmissionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatingAdmissionPolicyBinding(PolicyDocument):
    """Puts a ValidatingAdmissionPolicy into force, for some resources and with some parameters."""

    spec: BindingSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatingAdmissionPolicyBinding(PolicyDocument):
    """Puts a MutatingAdmissionPolicy into force, for some resources and with some parameters."""

    spec: BindingSpec


AdmissionPolicy: TypeAlias = ValidatingAdmissionPolicy | MutatingAdmissionPolicy
AdmissionBinding: TypeAlias = ValidatingAdmissionPolicyBinding | MutatingAdmissionPolicyBinding

_COMMON = (
    Field("match_constraints", CONSTRAINTS),
    Field("match_conditions", CONDITIONS),
    Field("variables", CONDITIONS),
    Field("param_kind", Record(ParamKind, Field("api_version", text), Field("kind", text))),
    Field("failure_policy", choice(FailurePolicy)),
)

_VALIDATING = Record(
    ValidatingAdmissionSpec,
    *_COMMON,
    Field("validations", VALIDATIONS),
    Field("audit_annotations", AUDIT_ANNOTATIONS),
)

_MUTATING = Record(
    MutatingAdmissionSpec,
    *_COMMON,
    Field("mutations", MUTATIONS),
    Field("reinvocation_policy", choice(ReinvocationPolicy)),
)

_MUTATING_BINDING = Record(
    BindingSpec,
    Field("policy_name", text, required=True),
    Field(
        "param_ref",
        Record(
            ParamRef,
            Field("name", text),
            Field("namespace", text),
            Field("selector", label_selector),
            Field("parameter_not_found_action", choice(ParameterNotFoundAction)),
        ),
    ),
    Field("match_resources", CONSTRAINTS),
)

_VALIDATING_BINDING = _MUTATING_BINDING.replacing(Field("validation_actions", VALIDATION_ACTIONS))

VALIDATING_ADMISSION_POLICY = policy_record(ValidatingAdmissionPolicy, _VALIDATING)
MUTATING_ADMISSION_POLICY = policy_record(MutatingAdmissionPolicy, _MUTATING)
VALIDATING_ADMISSION_POLICY_BINDING = policy_record(ValidatingAdmissionPolicyBinding, _VALIDATING_BINDING)
MUTATING_ADMISSION_POLICY_BINDING = policy_record(MutatingAdmissionPolicyBinding, _MUTATING_BINDING)
