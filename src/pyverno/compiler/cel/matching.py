"""Lowering of matchConstraints and matchResources to constraint matchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyverno.compiler.parser import Parser
from pyverno.engine.cel.constraints import NEVER_INTERCEPTED, ConstraintMatcher, ResourceRule
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSONObject
from pyverno.kube.selector import compile_selector
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.cel.constraints import MatchConstraints, MatchPolicy
from pyverno.policy.cel.constraints import ResourceRule as WrittenRule
from pyverno.policy.kinds import KNOWN_KINDS

__all__ = ["INVALID_SELECTOR", "lower_constraints", "selector_problems"]

INVALID_SELECTOR = "invalid-selector"
"""Code of errors about label selectors that Kubernetes refuses."""

_NOTHING = ResourceRule.of(groups=(), versions=(), operations=(), resources=())


def lower_constraints(
    written: MatchConstraints | None,
    parser: Parser,
    *,
    policy_namespace: str = "",
    is_kubernetes: bool = False,
    is_binding: bool = False,
    any_operation: bool = False,
) -> ConstraintMatcher:
    """Compile constraints; `is_kubernetes` for the API server's own policies, which differ from Kyverno's.

    A policy without rules matches nothing, a binding without rules everything. `any_operation` reads every rule
    as if it listed `*` (deleting policies). A selector that does not compile is reported and selects everything: the
    caller must turn the rules of such a policy into errors.

    A rule of a Kubernetes policy without operations matches all of them: the API server would reject it, and offline it
    must not match nothing.
    """
    written = written or MatchConstraints()
    for path, message in selector_problems(written):
        parser.report(message, path, code=INVALID_SELECTOR)
    rules = tuple(
        _rule(rule, any_operation=any_operation or (is_kubernetes and not rule.operations))
        for rule in written.resource_rules
    )
    return ConstraintMatcher(
        rules=rules if rules or is_binding else (_NOTHING,),
        excludes=tuple(_rule(rule, any_operation=any_operation) for rule in written.exclude_resource_rules),
        namespace_selector=_selector(written.namespace_selector),
        object_selector=_selector(written.object_selector),
        is_equivalent=is_kubernetes and written.match_policy is not MatchPolicy.EXACT,
        policy_namespace=policy_namespace,
        matches_generated_names=not is_kubernetes,
        never=NEVER_INTERCEPTED if is_kubernetes else frozenset(),
        kinds=KNOWN_KINDS,
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


def selector_problems(written: MatchConstraints) -> Iterator[tuple[Path, str]]:
    """Yield the place of each selector that does not compile, and why."""
    if written.namespace_selector is None and written.object_selector is None:
        return
    selectors = {"namespaceSelector": written.namespace_selector, "objectSelector": written.object_selector}
    for field, selector in selectors.items():
        try:
            compile_selector(selector)
        except ValueSyntaxError as error:
            yield (*written.path, field), error.message


def _selector(selector: JSONObject | None) -> Callable[[Mapping[str, str]], bool] | None:
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return None
    try:
        return compile_selector(selector)
    except ValueSyntaxError:
        return None
