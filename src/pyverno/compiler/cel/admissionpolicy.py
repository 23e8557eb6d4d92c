"""Lowering of Kubernetes' own admission policies with their bindings, and of `validate.cel` of a ClusterPolicy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from pyverno.compiler.cel.environment import CelCompiler
from pyverno.compiler.cel.matching import lower_constraints
from pyverno.compiler.cel.policy import lower_annotations, lower_mutations, lower_validations
from pyverno.compiler.parser import Parser
from pyverno.engine.actions.cel.admission import AdmissionMutation, AdmissionValidation, Binding, Params
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import Action, CompiledPolicy, CompiledRule, Family, PolicyInfo, RuleInfo, Stage
from pyverno.errors import PolicyError
from pyverno.kube.json import JSONObject
from pyverno.kube.yaml.fieldpath import locate
from pyverno.lang.cel import types
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.libraries.kyverno.data import OR_VALUE
from pyverno.lang.cel.presets import kubernetes_environment
from pyverno.lang.cel.syntax.parser import RESERVED
from pyverno.policy.cel.admissionpolicy import (
    AdmissionBinding,
    AdmissionPolicy,
    MutatingAdmissionPolicy,
    ParameterNotFoundAction,
    ParamRef,
    ValidatingAdmissionPolicy,
)
from pyverno.policy.cel.blocks import ValidationAction
from pyverno.policy.rule import Rule
from pyverno.policy.validate import NamedExpression, Validate
from pyverno.value import replace

__all__ = ["lower_cel_rule", "lower_mutating", "lower_validating"]


def lower_validating(
    policy: ValidatingAdmissionPolicy, bindings: Sequence[AdmissionBinding] = ()
) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    """Compile a ValidatingAdmissionPolicy with the bindings that name it."""
    parser = Parser(policy.document)
    spec = policy.spec
    compiler = _compiler(policy, parser, mutation=False)
    conditions = compiler.conditions(spec.match_conditions)
    _check_names(spec.variables, parser)
    variables = compiler.variables(spec.variables)
    bound, broken = _bindings(policy, bindings)
    action: Action = AdmissionValidation(
        validations=lower_validations(spec.validations, compiler),
        conditions=conditions,
        variables=variables,
        bindings=bound,
        annotations=lower_annotations(spec.audit_annotations, compiler),
        ignores_errors=spec.failure_policy.value == "Ignore",
    )
    if broken:
        action = _unavailable(broken)
    denies = not bindings or any(ValidationAction.DENY in each.spec.validation_actions for each in bindings)
    failure_action = FailureAction.ENFORCE if denies else FailureAction.AUDIT
    return _policy(policy, parser, action, failure_action=failure_action)


def lower_mutating(
    policy: MutatingAdmissionPolicy, bindings: Sequence[AdmissionBinding] = ()
) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    """Compile a MutatingAdmissionPolicy with the bindings that name it."""
    parser = Parser(policy.document)
    spec = policy.spec
    compiler = _compiler(policy, parser, mutation=True)
    conditions = compiler.conditions(spec.match_conditions)
    _check_names(spec.variables, parser)
    variables = compiler.variables(spec.variables)
    bound, broken = _bindings(policy, bindings)
    action: Action = AdmissionMutation(
        mutations=lower_mutations(spec.mutations, compiler),
        conditions=conditions,
        variables=variables,
        bindings=bound,
        ignores_errors=spec.failure_policy.value == "Ignore",
    )
    if broken:
        action = _unavailable(broken)
    return _policy(policy, parser, action, stage=Stage.MUTATE)


def lower_cel_rule(rule: Rule, validate: Validate, parser: Parser) -> Action:
    """Compile the `validate.cel` block of a rule."""
    cel = validate.cel
    assert cel is not None  # noqa: S101 - the caller looked
    known = len(parser.errors)
    names = {**AUTHORIZER_NAMES, "params": types.DYN} if cel.param_kind else AUTHORIZER_NAMES
    # Kyverno: in its own policies `orValue` also takes plain values
    compiler = CelCompiler(kubernetes_environment().extended(OR_VALUE), parser, names=names)
    conditions = compiler.conditions(rule.cel_preconditions)
    variables = compiler.variables(cel.variables)
    validations = tuple(
        each if each.message else replace(each, message=validate.message.strip())
        for each in lower_validations(cel.expressions, compiler)
    )
    kind = cel.param_kind or {}
    params = _params(str(kind.get("apiVersion") or ""), str(kind.get("kind") or ""), cel.param_ref)
    if len(parser.errors) > known:
        return _unavailable(parser.errors[known:])
    return AdmissionValidation(
        validations=validations,
        conditions=conditions,
        variables=variables,
        bindings=(Binding("", params=params),),
        passed=f"Validation rule '{rule.name}' passed.",
        skipped="cel preconditions not met",
        is_rule=True,
    )


def _check_names(variables: Sequence[NamedExpression], parser: Parser) -> None:
    """Report names of variables that an API server rejects."""
    for each in variables:
        if not each.name.isascii() or not each.name.isidentifier() or each.name in RESERVED:
            message = f"invalid value `{each.name}`: name is not a valid CEL identifier"
            parser.report(message, (*each.path, "name"), code="cel-compile")


def _compiler(policy: AdmissionPolicy, parser: Parser, *, mutation: bool) -> CelCompiler:
    names = AUTHORIZER_NAMES if policy.spec.param_kind is None else {**AUTHORIZER_NAMES, "params": types.DYN}
    return CelCompiler(kubernetes_environment(mutation=mutation), parser, names=names)


def _policy(
    policy: AdmissionPolicy,
    parser: Parser,
    action: Action,
    *,
    stage: Stage = Stage.VALIDATE,
    failure_action: FailureAction = FailureAction.ENFORCE,
) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    matcher = lower_constraints(policy.spec.match_constraints, parser, is_kubernetes=True)
    location = locate(policy.document, ("metadata", "name"))
    rule_type = RuleType.MUTATION if stage is Stage.MUTATE else RuleType.VALIDATION
    info = PolicyInfo(
        kind=policy.kind,
        api_version=policy.api_version,
        name=policy.name,
        family=Family.ADMISSION,
        labels=policy.labels,
        annotations=policy.annotations,
        failure_policy=policy.spec.failure_policy.value,
        source=policy.kind,
        location=location,
    )
    if parser.errors:
        action = _unavailable(parser.errors)
    rule_info = RuleInfo(info, policy.name, rule_type, location, can_deny=failure_action is FailureAction.ENFORCE)
    fast_tier = None
    if isinstance(action, AdmissionValidation):
        fast_tier = cache(partial(action.fast_tier, rule_info, failure_action))
    rule = CompiledRule(
        info=rule_info,
        stage=stage,
        matcher=matcher,
        action=action,
        failure_action=failure_action,
        fast_tier=fast_tier,
    )
    return CompiledPolicy(info, (rule,)), tuple(parser.errors)


def _bindings(
    policy: AdmissionPolicy, bindings: Sequence[AdmissionBinding]
) -> tuple[tuple[Binding, ...], tuple[PolicyError, ...]]:
    """Compile bindings; an error belongs to the binding's document, but the policy cannot run with it."""
    parsers = [Parser(each.document) for each in bindings]
    bound = tuple(_binding(policy, each, parser) for each, parser in zip(bindings, parsers, strict=True))
    return bound, tuple(error for parser in parsers for error in parser.errors)


def _unavailable(errors: Sequence[PolicyError]) -> Unavailable:
    return Unavailable("; ".join(str(error) for error in errors), ignores_delete=False)


def _binding(policy: AdmissionPolicy, binding: AdmissionBinding, parser: Parser) -> Binding:
    spec, kind = binding.spec, policy.spec.param_kind
    reference = spec.param_ref
    matcher = None
    if spec.match_resources is not None:
        matcher = lower_constraints(spec.match_resources, parser, is_kubernetes=True, is_binding=True)
    return Binding(
        binding.name,
        matcher,
        Params() if kind is None else _params_of(kind.api_version, kind.kind, reference),
        tuple(each.value for each in spec.validation_actions),
    )


def _params_of(api_version: str, kind: str, reference: ParamRef | None) -> Params:
    if reference is None:
        return Params(api_version, kind)
    return Params(
        api_version,
        kind,
        has_reference=True,
        name=reference.name,
        namespace=reference.namespace,
        selector=reference.selector,
        denies_when_missing=reference.parameter_not_found_action is ParameterNotFoundAction.DENY,
    )


def _params(api_version: str, kind: str, reference: JSONObject | None) -> Params:
    if reference is None:
        return Params(api_version, kind)
    return Params(
        api_version,
        kind,
        has_reference=True,
        name=str(reference.get("name") or ""),
        namespace=str(reference.get("namespace") or ""),
        selector=reference.get("selector"),
        denies_when_missing=reference.get("parameterNotFoundAction") == "Deny",
    )
