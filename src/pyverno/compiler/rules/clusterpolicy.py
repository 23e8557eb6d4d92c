"""Lowering of ClusterPolicy and Policy: written rules, autogen copies included, become compiled rules.

Every pattern, condition, template and expression is parsed here, once; what does not parse is collected. This module
must never evaluate a rule, nor repeat a check of `validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.parser import Parser, lower_preconditions
from pyverno.compiler.rules.context import data_names, lower_context
from pyverno.compiler.rules.matching import lower_matcher
from pyverno.compiler.rules.validating import excuses_updates, lower_validate
from pyverno.engine.actions.unavailable import Unavailable
from pyverno.engine.result import FailureAction, RuleType, Verdict
from pyverno.engine.rule import (
    Action,
    ActionOverride,
    CompiledPolicy,
    CompiledRule,
    Family,
    FastTier,
    Guard,
    HasFastTier,
    PolicyInfo,
    RuleInfo,
    Run,
    Stage,
)
from pyverno.errors import PolicyError
from pyverno.kube.json import encode
from pyverno.kube.wildcard import compile_wildcard
from pyverno.kube.yaml.fieldpath import locate
from pyverno.policy.clusterpolicy import ApplyRules, ClusterPolicy
from pyverno.policy.failureaction import FailureActionOverride
from pyverno.policy.generate import Generate
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.subresources import misses_scale, pod_subresources_of
from pyverno.policy.validate import NamedExpression, Validate
from pyverno.value import replace

__all__ = ["lower_cluster_policy"]

_READ_BY_FAST_TIER = frozenset({"request", "element"})


def lower_cluster_policy(policy: ClusterPolicy) -> tuple[CompiledPolicy, tuple[PolicyError, ...]]:
    """Compile a policy; returns it with everything that does not parse (then its rules err when they run)."""
    parser = Parser(policy.document)
    spec = policy.spec
    info = PolicyInfo(
        kind=policy.kind,
        api_version=policy.api_version,
        name=policy.name,
        family=Family.RULES,
        namespace=(policy.namespace or "default") if policy.is_namespaced else "",
        labels=policy.labels,
        annotations=policy.annotations,
        failure_policy=spec.failure_policy.value,
        apply_one=spec.apply_rules is ApplyRules.ONE,
        admission=spec.admission,
        background=spec.background,
        emit_warning=spec.emit_warning,
        location=locate(policy.document, ("metadata", "name")),
    )
    conditions = _lower_match_conditions(spec.webhook.match_conditions, parser)
    rules = tuple(lowered for rule in expand(policy) for lowered in _lower_rules(rule, policy, info, parser))
    if conditions is not None:
        rules = tuple(_behind(conditions, rule) for rule in rules)
    return CompiledPolicy(info, rules), tuple(parser.errors)


def _lower_match_conditions(written: tuple[NamedExpression, ...], parser: Parser) -> Guard | Unavailable | None:
    """Compile the match conditions of the policy's webhook; Unavailable when one of them does not compile."""
    if not written:
        return None
    from pyverno.compiler.cel.webhookconditions import lower_webhook_conditions

    known = len(parser.errors)
    guard = lower_webhook_conditions(written, parser)
    broken = parser.errors[known:]
    return Unavailable("; ".join(map(str, broken)), ignores_delete=False) if broken else guard


def _behind(conditions: Guard | Unavailable, rule: CompiledRule) -> CompiledRule:
    """Return a rule that match conditions are in front of; they look at more than its fast tier does."""
    if isinstance(conditions, Unavailable):
        return replace(rule, action=conditions, fast_tier=None)
    return replace(rule, guards=(conditions, *rule.guards), fast_tier=None)


def _lower_rules(
    rule: Rule, policy: ClusterPolicy, info: PolicyInfo, parser: Parser
) -> tuple[CompiledRule] | tuple[CompiledRule, CompiledRule]:
    """Compile a rule; one that verifies images is also judged where objects are validated."""
    if not isinstance(rule.action, VerifyImages):
        return (_lower_rule(rule, policy, info, parser, lambda: _lower_action(rule, policy, parser)),)
    from pyverno.compiler.rules.imageverification import lower_verify_images

    known = len(parser.errors)
    parser.data = data_names(rule.context)
    verifying, check = lower_verify_images(rule, rule.action, parser)
    found = "; ".join(map(str, parser.errors[known:]))
    action: Action = Unavailable(found) if found else verifying
    lowered = _lower_rule(rule, policy, info, parser, lambda: (Stage.VERIFY_IMAGES, RuleType.IMAGE_VERIFY, action))
    if check is None or isinstance(lowered.action, Unavailable):
        return (lowered,)
    return (lowered, replace(lowered, stage=Stage.VALIDATE, action=check))


def _lower_rule(
    rule: Rule,
    policy: ClusterPolicy,
    info: PolicyInfo,
    parser: Parser,
    lower: Callable[[], tuple[Stage, RuleType, Action]],
) -> CompiledRule:
    known = len(parser.errors)
    parser.data = data_names(rule.context)
    stage, rule_type, action = lower()
    preconditions = lower_preconditions(rule.preconditions, parser, (*rule.path, "preconditions"))
    failure_action, overrides = _failure_action(rule, policy)
    origin = _origin(rule, policy)
    can_deny = FailureAction.ENFORCE in (failure_action, *(override.action for override in overrides))
    rule_info = RuleInfo(
        policy=info,
        name=rule.name,
        type=rule_type,
        location=locate(policy.document, rule.path),
        origin=origin,
        can_deny=can_deny,
    )
    bindings = lower_context(rule.context, parser)
    broken = parser.errors[known:]
    if broken:
        # the policy stays loaded; its rule yields the error for each request
        action = Unavailable("; ".join(str(error) for error in broken), ignores_delete=False)
    validate = rule.action if isinstance(rule.action, Validate) else None
    plain = validate is not None and not overrides and not rule.report_properties and not broken
    plain = plain and not any(binding.name in _READ_BY_FAST_TIER for binding in bindings)
    return CompiledRule(
        info=rule_info,
        stage=stage,
        matcher=lower_matcher(
            rule.match,
            rule.exclude,
            policy_namespace=info.namespace,
            pod_subresources=pod_subresources_of(rule),
        ),
        action=action,
        bindings=bindings,
        guards=() if preconditions is None or broken else (preconditions,),
        failure_action=failure_action,
        overrides=overrides,
        checks_existing=excuses_updates(rule, background=policy.spec.background),
        misses_scale=misses_scale(rule),
        mutates_existing=stage is Stage.MUTATE_EXISTING,
        skips_background_requests=rule.skip_background_requests,
        report_properties=_properties(rule, parser) if rule.report_properties else None,
        fast_tier=_fast_tier_of(action, rule_info, failure_action) if plain else None,
    )


def _fast_tier_of(action: Action, info: RuleInfo, failure_action: FailureAction) -> Callable[[], FastTier] | None:
    """Return a function that makes the fast tier of an action on first use; None when the action has none."""
    if not isinstance(action, HasFastTier):
        return None
    made: list[FastTier] = []  # `functools.cache` takes more memory than most of a rule
    make = action.fast_tier

    def fast_tier() -> FastTier:
        if not made:
            made.append(make(info, failure_action))
        return made[0]

    return fast_tier


def _lower_action(rule: Rule, policy: ClusterPolicy, parser: Parser) -> tuple[Stage, RuleType, Action]:
    match rule.action:
        case Validate() as validate:
            return Stage.VALIDATE, RuleType.VALIDATION, lower_validate(rule, validate, parser)
        case Mutate() as mutate:
            # imported here and below, because most runs only validate
            from pyverno.compiler.rules.mutating import lower_mutate

            stage = Stage.MUTATE_EXISTING if mutate.targets else Stage.MUTATE
            return stage, RuleType.MUTATION, lower_mutate(rule, mutate, parser)
        case Generate() as generate:
            from pyverno.compiler.rules.generating import lower_generate

            use_apply = policy.spec.use_server_side_apply
            return Stage.GENERATE, RuleType.GENERATION, lower_generate(generate, parser, server_side_apply=use_apply)
    raise PolicyError(f"rule `{rule.name}` has an action that is lowered elsewhere")


def _origin(rule: Rule, policy: ClusterPolicy) -> str:
    index = rule.path[2] if len(rule.path) > 2 else None
    if not isinstance(index, int) or not 0 <= index < len(policy.spec.rules):
        return ""
    written = policy.spec.rules[index].name
    return "" if written == rule.name else written


def _failure_action(rule: Rule, policy: ClusterPolicy) -> tuple[FailureAction, tuple[ActionOverride, ...]]:
    """Resolve where a rule's failure action comes from: its own override, itself, the policy's override, the policy."""
    spec = policy.spec
    if isinstance(rule.action, VerifyImages):
        own = [entry.failure_action for entry in rule.action.entries if entry.failure_action is not None]
        if own:
            enforce = any(action.value == "Enforce" for action in own)
            return (FailureAction.ENFORCE if enforce else FailureAction.AUDIT), ()
    if isinstance(rule.action, Validate):
        own_overrides = tuple(_override(each) for each in rule.action.failure_action_overrides)
        if rule.action.failure_action is not None:
            return FailureAction(rule.action.failure_action.value), own_overrides
        overrides = (*own_overrides, *(_override(each) for each in spec.failure_action_overrides))
        return FailureAction(spec.failure_action.value), overrides
    return FailureAction(spec.failure_action.value), tuple(_override(each) for each in spec.failure_action_overrides)


def _override(written: FailureActionOverride) -> ActionOverride:
    action = FailureAction(written.action.value) if written.action is not None else FailureAction.AUDIT
    selector: Callable[[Mapping[str, str]], bool] | None = None
    if written.namespace_selector is not None:
        from pyverno.kube.selector import compile_selector

        selector = compile_selector(written.namespace_selector, wildcards=True)
    return ActionOverride(action, tuple(compile_wildcard(name) for name in written.namespaces), selector)


def _properties(rule: Rule, parser: Parser) -> Callable[[Run, Verdict], Mapping[str, str]]:
    template = parser.template(dict(rule.report_properties), (*rule.path, "reportProperties"))

    def properties(run: Run, _: Verdict) -> Mapping[str, str]:
        rendered = template.render(run.scope, run.runtime, delete_request=run.is_delete)
        return {key: value if isinstance(value, str) else encode(value) for key, value in rendered.items()}

    return properties
