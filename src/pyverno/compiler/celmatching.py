"""Lowering of matchConstraints and matchResources to constraint matchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyverno.engine.constraints import NEVER_INTERCEPTED, ConstraintMatcher, ResourceRule
from pyverno.kube.json import JSONObject
from pyverno.kube.selector import compile_selector
from pyverno.policy.constraints import MatchConstraints, MatchPolicy
from pyverno.policy.constraints import ResourceRule as WrittenRule

__all__ = ["lower_constraints"]

_NOTHING = ResourceRule.of(groups=(), versions=(), operations=(), resources=())


def lower_constraints(
    written: MatchConstraints | None,
    *,
    policy_namespace: str = "",
    is_kubernetes: bool = False,
    is_binding: bool = False,
    any_operation: bool = False,
) -> ConstraintMatcher:
    """Compile constraints; `is_kubernetes` for the API server's own policies, whose ways differ from Kyverno's.

    A policy without rules is about nothing, a binding without rules about everything. `any_operation` reads every rule
    as if it listed `*` (deleting policies). Raises ValueSyntaxError for a selector that does not compile.
    """
    written = written or MatchConstraints()
    rules = tuple(_rule(rule, any_operation=any_operation) for rule in written.resource_rules)
    return ConstraintMatcher(
        rules=rules if rules or is_binding else (_NOTHING,),
        excludes=tuple(_rule(rule, any_operation=False) for rule in written.exclude_resource_rules),
        namespace_selector=_selector(written.namespace_selector),
        object_selector=_selector(written.object_selector),
        is_equivalent=is_kubernetes and written.match_policy is not MatchPolicy.EXACT,
        policy_namespace=policy_namespace,
        matches_generated_names=not is_kubernetes,
        never=NEVER_INTERCEPTED if is_kubernetes else frozenset(),
    )


def _rule(rule: WrittenRule, *, any_operation: bool) -> ResourceRule:
    return ResourceRule.of(
        groups=rule.api_groups,
        versions=rule.api_versions,
        operations=("*",) if any_operation else rule.operations,
        resources=rule.resources,
        names=rule.resource_names,
        scope=rule.scope,
    )


def _selector(selector: JSONObject | None) -> Callable[[Mapping[str, str]], bool] | None:
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return None
    return compile_selector(selector)
