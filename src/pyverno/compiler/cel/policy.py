"""Lowering of the policies.kyverno.io kinds: every expression is compiled here, once, with its types checked.

A policy about Pods also becomes rules for the controllers that make Pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from pyverno.compiler.autogen.cel import copies_of
from pyverno.compiler.cel.authorization import ANSWERING, lower_authorization
from pyverno.compiler.cel.environment import CelCompiler, environment_of_kind
from pyverno.compiler.cel.matching import lower_constraints
from pyverno.compiler.cel.template import lower_template
from pyverno.compiler.parser import Parser
from pyverno.engine.actions.cel.annotations import annotation_properties
from pyverno.engine.actions.cel.delete import DeletingAction
from pyverno.engine.actions.cel.generate import GeneratingAction, TemplateSource
from pyverno.engine.actions.cel.images import ImageValidatingCheck
from pyverno.engine.actions.cel.mutate import CelMutation, MutatingAction
from pyverno.engine.actions.cel.targets import CelTargets, MutatingTargets
from pyverno.engine.actions.cel.validate import CelValidation, ValidatingCheck
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.cel.authorization import CheckRequestMatcher
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.cel.exceptions import CompiledCelException
from pyverno.engine.result import FailureAction, RuleType
from pyverno.engine.rule import (
    Action,
    CompiledPolicy,
    CompiledRule,
    Family,
    PolicyInfo,
    RequestMatcher,
    RuleInfo,
    Stage,
)
from pyverno.errors import Location, PolicyError
from pyverno.kube.yaml.fieldpath import locate
from pyverno.lang.cel import Program, types
from pyverno.lang.cel.libraries.authorizer import AUTHORIZER_NAMES
from pyverno.lang.cel.types import Type, list_of, map_of, struct
from pyverno.policy.cel.blocks import EvaluationMode, Mutation, ValidationAction
from pyverno.policy.cel.exception import CelException, ReportResult
from pyverno.policy.cel.imagepolicy import ImageValidatingPolicy
from pyverno.policy.cel.policies import (
    CelPolicy,
    DeletingPolicy,
    GeneratingPolicy,
    MutatingPolicy,
    ValidatingPolicy,
)
from pyverno.policy.kinds import find_kind
from pyverno.policy.validate import AuditAnnotation, CelExpression
from pyverno.value import replace

__all__ = ["lower_cel_exception", "lower_cel_policy"]

_EXCEPTIONS: Mapping[str, Type] = {"exceptions": map_of(types.STRING, list_of(types.STRING))}
_TYPES = {
    Stage.VALIDATE: RuleType.VALIDATION,
    Stage.MUTATE: RuleType.MUTATION,
    Stage.MUTATE_EXISTING: RuleType.MUTATION,
    Stage.GENERATE: RuleType.GENERATION,
    Stage.CLEANUP: RuleType.DELETION,
}

T = TypeVar("T")


def lower_cel_policy(policy: CelPolicy) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    """Compile a policy; returns it with everything that does not compile (then its rules err when they run)."""
    info = _info(policy)
    errors: dict[tuple[str, Location | None], list[PolicyError]] = {}
    exact: dict[tuple[str, str], Location] = {}
    rules: list[CompiledRule] = []
    for each in (policy, *_copies(policy)):
        parser = Parser(policy.document, exact=exact)
        if isinstance(each, ImageValidatingPolicy):
            rules.extend(_verifying(each, info, parser))
        else:
            rules.append(_LOWERINGS[type(policy)](each, info, parser))
        # what is wrong with a copy at a place where its origin is wrong too is the same mistake
        known = frozenset(errors)
        for error in parser.errors:
            place = error.path, error.location
            if place not in known:
                errors.setdefault(place, []).append(error)
    return CompiledPolicy(info, tuple(rules)), tuple(chain.from_iterable(errors.values()))


def _copies(policy: CelPolicy) -> tuple[CelPolicy, ...]:
    """Return the autogen copies of a policy that are rules of their own."""
    if policy.spec.evaluation.mode in ANSWERING:
        return ()
    return tuple(copy.policy for copy in copies_of(policy))


def _info(policy: CelPolicy) -> PolicyInfo:
    evaluation = policy.spec.evaluation
    row = find_kind("policies.kyverno.io", policy.kind)
    return PolicyInfo(
        kind=policy.kind,
        api_version=policy.api_version,
        name=policy.name,
        family=Family.IMAGES if isinstance(policy, ImageValidatingPolicy) else Family.CEL,
        namespace=(policy.namespace or "default") if policy.is_namespaced else "",
        labels=policy.labels,
        annotations=policy.annotations,
        failure_policy=policy.spec.failure_policy.value,
        admission=evaluation.admission,
        background=evaluation.background and not isinstance(policy, GeneratingPolicy),
        emit_warning=isinstance(policy, (ValidatingPolicy, ImageValidatingPolicy))
        and ValidationAction.WARN in policy.spec.validation_actions,
        source=row.source if row is not None else policy.kind,
        reads_payloads=evaluation.mode is EvaluationMode.JSON or isinstance(policy, DeletingPolicy),
        answers=evaluation.mode.value if isinstance(policy, ValidatingPolicy) and evaluation.mode in ANSWERING else "",
        location=locate(policy.document, ("metadata", "name")),
    )


def _rule(
    policy: CelPolicy,
    info: PolicyInfo,
    parser: Parser,
    stage: Stage,
    action: Action,
    *,
    name: str = "",
    failure_action: FailureAction = FailureAction.AUDIT,
) -> CompiledRule:
    """Return the rule; if it does not compile, one that yields an ERROR for everything that it may match."""
    matcher = _matcher(policy, info, parser, stage)
    if parser.errors and not isinstance(action, Unavailable):
        action = Unavailable("; ".join(str(error) for error in parser.errors), ignores_delete=False)
    rule_info = RuleInfo(
        info,
        name,
        RuleType.IMAGE_VERIFY if isinstance(policy, ImageValidatingPolicy) else _TYPES[stage],
        locate(policy.document, ("spec",)),
        can_deny=failure_action is FailureAction.ENFORCE,
    )
    fast_tier = None
    if isinstance(action, ValidatingCheck):
        fast_tier = _once(partial(action.fast_tier, rule_info, failure_action))
    return CompiledRule(
        info=rule_info,
        stage=stage,
        matcher=matcher,
        action=action,
        failure_action=failure_action,
        mutates_existing=isinstance(policy, MutatingPolicy) and policy.spec.evaluation.mutate_existing,
        skips_background_requests=policy.spec.evaluation.skip_background_requests,
        fast_tier=fast_tier,
    )


def _once(make: Callable[[], T]) -> Callable[[], T]:
    """Return a function that makes something at its first call; `functools.cache` costs more than most of a rule."""
    made: list[T] = []

    def once() -> T:
        if not made:
            made.append(make())
        return made[0]

    return once


def _matcher(policy: CelPolicy, info: PolicyInfo, parser: Parser, stage: Stage) -> RequestMatcher:
    spec = policy.spec
    if info.answers:
        return CheckRequestMatcher(info.answers)
    if spec.evaluation.mode is EvaluationMode.JSON:
        return ConstraintMatcher(policy_namespace=info.namespace)
    is_cleanup = stage is Stage.CLEANUP
    return lower_constraints(spec.match_constraints, parser, policy_namespace=info.namespace, any_operation=is_cleanup)


def _compiler(policy: CelPolicy, parser: Parser, *, is_payload: bool = False) -> CelCompiler:
    environment = environment_of_kind(policy.kind)
    return CelCompiler(environment, parser, names=_EXCEPTIONS, is_payload=is_payload, request_has_objects=True)


def _validating(policy: ValidatingPolicy, info: PolicyInfo, parser: Parser) -> CompiledRule:
    spec = policy.spec
    denies = ValidationAction.DENY in spec.actions
    action = FailureAction.ENFORCE if denies else FailureAction.AUDIT
    if info.answers:
        answering = lower_authorization(policy, parser)
        return _rule(policy, info, parser, Stage.VALIDATE, answering, name=policy.name, failure_action=action)
    is_payload = spec.evaluation.mode is EvaluationMode.JSON
    compiler = _compiler(policy, parser, is_payload=is_payload)
    conditions = compiler.conditions(spec.match_conditions)
    variables = compiler.variables(spec.variables)
    check = ValidatingCheck(
        validations=lower_validations(spec.validations, compiler, keeps_blanks=True),
        conditions=conditions,
        variables=variables,
        annotations=lower_annotations(spec.audit_annotations, compiler),
        ignores_errors=info.failure_policy == "Ignore",
        reads_payload=is_payload,
    )
    rule = _rule(policy, info, parser, Stage.VALIDATE, check, failure_action=action)
    return replace(rule, report_properties=check.properties) if check.annotations else rule


def lower_annotations(
    annotations: Sequence[AuditAnnotation], compiler: CelCompiler, *, accepts_dyn: bool = False
) -> tuple[tuple[str, Program], ...]:
    """Compile audit annotations: key and an expression that gives a text or null.

    Kyverno: policies that mutate or generate may leave the type open, those that validate may not.
    """
    expected = (types.STRING, types.NULL, types.DYN) if accepts_dyn else (types.STRING, types.NULL)
    compiled = (
        (each.key, compiler.compile(each.value_expression, (*each.path, "valueExpression"), expected=expected))
        for each in annotations
    )
    return tuple((key, program) for key, program in compiled if program is not None)


def lower_validations(
    validations: Sequence[CelExpression], compiler: CelCompiler, *, keeps_blanks: bool = False
) -> tuple[CelValidation, ...]:
    """Compile validations with their message expressions.

    Kubernetes removes blanks around messages; Kyverno keeps them (`keeps_blanks`).
    """
    compiled = []
    for each in validations:
        program = compiler.compile(each.expression, (*each.path, "expression"), expected=types.BOOL)
        message: Program | None = None
        if each.message_expression.strip():
            message = compiler.compile(
                each.message_expression, (*each.path, "messageExpression"), expected=types.STRING
            )
            if message is not None and not message.variables.isdisjoint(AUTHORIZER_NAMES):
                # Kubernetes: messages are compiled without the authorizer
                text = "undeclared reference to 'authorizer' (in container '')"
                compiler.parser.report(text, (*each.path, "messageExpression"), code="cel-compile")
        if program is not None:
            text = each.message if keeps_blanks else each.message.strip()
            compiled.append(CelValidation(program, each.expression, text, message, each.reason))
    return tuple(compiled)


_TARGETS = (types.map_of(types.STRING, types.ANY), types.map_of(types.STRING, types.DYN))
"""The results of a targets expression: an object that `resource.Get` or `resource.List` read, or that it builds."""


def _mutating(policy: MutatingPolicy, info: PolicyInfo, parser: Parser) -> CompiledRule:
    spec = policy.spec
    compiler = _compiler(policy, parser)
    variables = compiler.variables(spec.variables)
    conditions = compiler.conditions(spec.match_conditions)
    mutations = lower_mutations(spec.mutations, compiler)
    annotations = lower_annotations(spec.audit_annotations, compiler, accepts_dyn=True)
    refuses_atomics = not spec.evaluation.use_server_side_apply
    if spec.target_match_constraints is not None:
        written = spec.target_match_constraints
        expression = None
        if written.expression is not None:
            expression = compiler.compile(written.expression.text, written.expression.path)
            if expression is not None and expression.type not in _TARGETS:
                parser.report("output type must be a map", written.expression.path, code="cel-compile")
        matcher = lower_constraints(written.constraints, parser, policy_namespace=info.namespace, any_operation=True)
        targets = CelTargets(matcher, expression, compiler.conditions(spec.target_match_conditions))
        existing = MutatingTargets(targets, mutations, conditions, variables, refuses_atomics, annotations)
        return _annotate(_rule(policy, info, parser, Stage.MUTATE_EXISTING, existing), annotations)
    action = MutatingAction(
        mutations=mutations,
        conditions=conditions,
        variables=variables,
        refuses_atomics=refuses_atomics,
        annotations=annotations,
        target_conditions=compiler.conditions(spec.target_match_conditions),
    )
    return _annotate(_rule(policy, info, parser, Stage.MUTATE, action), annotations)


def _annotate(rule: CompiledRule, annotations: Sequence[tuple[str, Program]]) -> CompiledRule:
    return replace(rule, report_properties=annotation_properties) if annotations else rule


def lower_mutations(mutations: Sequence[Mutation], compiler: CelCompiler) -> tuple[CelMutation, ...]:
    """Compile mutations: an Object for ApplyConfiguration, a list of JSONPatch for JSONPatch."""
    compiled = []
    for each in mutations:
        if each.expression is None:
            continue
        is_json_patch = each.json_patch is each.expression
        expected = list_of(struct("JSONPatch")) if is_json_patch else struct("Object")
        program = compiler.compile(each.expression.text, each.expression.path, expected=expected)
        if program is not None:
            compiled.append(CelMutation(program, is_json_patch))
    return tuple(compiled)


def _generating(policy: GeneratingPolicy, info: PolicyInfo, parser: Parser) -> CompiledRule:
    spec = policy.spec
    compiler = _compiler(policy, parser)
    conditions = compiler.conditions(spec.match_conditions)
    variables = compiler.variables(spec.variables)
    entries: list[Program | TemplateSource] = []
    for each in spec.generate:
        if each.expression is not None:
            program = compiler.compile(each.expression.text, each.expression.path, expected=types.BOOL)
            if program is not None:
                entries.append(program)
        elif each.template is not None:
            template = lower_template(each.template, each.template_path, compiler, is_interpolated=each.is_interpolated)
            if template is not None:
                entries.append(template)
    annotations = lower_annotations(spec.audit_annotations, compiler, accepts_dyn=True)
    evaluation = spec.evaluation
    action = GeneratingAction(
        tuple(entries),
        conditions,
        variables,
        synchronize=evaluation.synchronize,
        server_side_apply=spec.use_server_side_apply,
        orphan_on_policy_delete=evaluation.orphan_downstream_on_policy_delete,
        annotations=annotations,
    )
    return _annotate(_rule(policy, info, parser, Stage.GENERATE, action, name=policy.name), annotations)


def _deleting(policy: DeletingPolicy, info: PolicyInfo, parser: Parser) -> CompiledRule:
    spec = policy.spec
    compiler = _compiler(policy, parser)
    variables = compiler.variables(spec.variables)
    propagation = spec.deletion_propagation_policy.value if spec.deletion_propagation_policy else ""
    action = DeletingAction(compiler.conditions(spec.conditions), variables, propagation)
    return _rule(policy, info, parser, Stage.CLEANUP, action, name=policy.name)


def _verifying(policy: ImageValidatingPolicy, info: PolicyInfo, parser: Parser) -> tuple[CompiledRule, ...]:
    from pyverno.compiler.cel.images import lower_images  # few policies match images

    spec = policy.spec
    environment = environment_of_kind(policy.kind)
    lowered = lower_images(spec, environment, parser, ignores_errors=info.failure_policy == "Ignore")
    action = FailureAction.ENFORCE if ValidationAction.DENY in spec.actions else FailureAction.AUDIT
    make = partial(_rule, policy, info, parser, failure_action=action)
    rules = [make(Stage.VALIDATE, lowered.check, name=policy.name)]
    if lowered.check.annotations and isinstance(rules[0].action, ImageValidatingCheck):
        rules[0] = replace(rules[0], report_properties=lowered.check.properties)
    configuration = spec.validation_configurations
    if isinstance(rules[0].action, Unavailable) or info.reads_payloads:
        return tuple(rules)
    if configuration.mutate_digest:
        rules.append(make(Stage.MUTATE, lowered.pin, name="mutateDigest"))
    if configuration.required:
        rules.append(make(Stage.REQUIRE_IMAGES, lowered.required, name=policy.name))
    return tuple(rules)


_LOWERINGS: Mapping[type[CelPolicy], Callable[[Any, PolicyInfo, Parser], CompiledRule]] = {
    ValidatingPolicy: _validating,
    MutatingPolicy: _mutating,
    GeneratingPolicy: _generating,
    DeletingPolicy: _deleting,
}


def lower_cel_exception(exception: CelException) -> tuple[CompiledCelException, tuple[PolicyError, ...]]:
    """Compile an exception of CEL policies; returns it with everything that does not compile."""
    parser = Parser(exception.document)
    spec = exception.spec
    compiler = CelCompiler(environment_of_kind("ValidatingPolicy"), parser, request_has_objects=True)
    expires = spec.expires_at
    compiled = CompiledCelException(
        name=exception.name,
        namespace=exception.namespace or "default",
        references=frozenset((reference.name, reference.kind) for reference in spec.policy_refs),
        conditions=compiler.conditions(spec.match_conditions),
        images=spec.images,
        allowed_values=spec.allowed_values,
        reports_pass=spec.report_result is ReportResult.PASS,
        expires_at=None if expires is None else expires.nanoseconds,
        priority=exception.priority,
    )
    return compiled, tuple(parser.errors)
