"""Reasons why a policy cannot become an admission policy of Kubernetes, in Kyverno's words.

A policy that cannot be expressed completely stays with the webhook: the API server would refuse too much or too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyverno.compiler.autogen.cel import copies_of
from pyverno.kube.wildcard import has_wildcard
from pyverno.policy.cel.exception import CelException
from pyverno.policy.cel.policies import MutatingPolicy, ValidatingPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.exception import PolicyException
from pyverno.policy.failureaction import FailureActionOverride
from pyverno.policy.match import MatchBlocks, ResourceDescription, ResourceFilter
from pyverno.policy.validate import Validate

__all__ = ["Convertible", "exception_obstacle", "obstacle"]

Convertible = ClusterPolicy | ValidatingPolicy | MutatingPolicy
"""Kinds that can become an admission policy; namespaced kinds cannot."""

_SERVER_SIDE_APPLY: Final = (
    "useServerSideApply is enabled, which mutates atomic fields that a native MutatingAdmissionPolicy rejects"
)
_NO_CEL: Final = "for non CEL rules"
_AN_EXCEPTION: Final = "a policy exception is configured"
_SELECTORS: Final = "NamespaceSelector / ObjectSelector"


def obstacle(policy: Convertible, exceptions: Sequence[PolicyException | CelException] = ()) -> str:
    """Return why a policy with these exceptions cannot be converted, the empty text when it can.

    The text is the message of the policy's status.
    """
    word = "Mutating" if isinstance(policy, MutatingPolicy) else "Validating"
    reason = next(_reasons(policy, exceptions), "")
    if reason == _NO_CEL:  # COMPAT: Kyverno words this one without the colon
        return f"skip generating {word}AdmissionPolicy {reason}."
    return f"skip generating {word}AdmissionPolicy: {reason}." if reason else ""


def exception_obstacle(exceptions: Iterable[PolicyException]) -> str:
    """Return the first reason why exceptions of rules cannot be part of an admission policy, or the empty text."""
    return next((reason for exception in exceptions for reason in _of_exception(exception)), "")


def _reasons(policy: Convertible, exceptions: Sequence[PolicyException | CelException]) -> Iterator[str]:
    if isinstance(policy, ClusterPolicy):
        yield from _of_rules(policy)
        reason = exception_obstacle(each for each in exceptions if isinstance(each, PolicyException))
        if reason:
            yield reason
        return
    if not policy.spec.autogen.admission_policy:
        yield "not enabled"
    if copies_of(policy):
        yield "pod controllers autogen is enabled"
    evaluation = policy.spec.evaluation
    if policy.spec.match_constraints is None or not evaluation.admission or evaluation.mode.value != "Kubernetes":
        yield "the policy is not about admission"
    if isinstance(policy, MutatingPolicy):
        if policy.spec.evaluation.use_server_side_apply:
            yield _SERVER_SIDE_APPLY
        if policy.spec.target_match_constraints is not None:
            yield "targetMatchConstraints are not applicable"
    for exception in exceptions:
        # lists of what is allowed cannot be given to expressions under a condition, nor only for a time
        is_conditional = isinstance(exception, CelException) and bool(exception.spec.match_conditions)
        is_partial = isinstance(exception, CelException) and exception.is_partial
        if is_partial and (is_conditional or isinstance(policy, MutatingPolicy)):
            yield _AN_EXCEPTION
        if isinstance(exception, CelException) and exception.spec.expires_at is not None:
            yield "expiresAt in PolicyException is not applicable"


def _of_rules(policy: ClusterPolicy) -> Iterator[str]:
    rules = policy.spec.rules
    if len(rules) != 1:
        yield "multiple rules are not applicable" if rules else "no rules found"
        return
    [rule] = rules
    if not isinstance(rule.action, Validate) or rule.action.cel is None:
        yield _NO_CEL
        return
    if not rule.action.cel.generate:
        yield "validate.cel.generate is not set to true"
    for overrides in (policy.spec.failure_action_overrides, rule.action.failure_action_overrides):
        yield from _of_overrides(overrides)
    if rule.context or rule.preconditions is not None:
        yield "context and preconditions are not applicable"
    yield from _of_match(rule.match)
    if rule.exclude is not None:
        yield from _of_exclude(rule.exclude, "exclude block")


def _of_overrides(overrides: Sequence[FailureActionOverride]) -> Iterator[str]:
    if len(overrides) > 1:
        yield "multiple validationFailureActionOverrides are not applicable"
    if overrides and overrides[0].namespaces:
        yield "Namespaces in validationFailureActionOverrides is not applicable"
    if overrides and overrides[0].namespace_selector is not None:
        yield "NamespaceSelector in validationFailureActionOverrides is not applicable"


def _of_match(match: MatchBlocks) -> Iterator[str]:
    blocks = match.blocks
    yield from _of_blocks(blocks)
    if len(match.all) > 1:
        yield "multiple 'all' in the match block is not applicable"
    if len(blocks) > 1:
        if any(_has_selector(block.resources) for block in blocks):
            yield f"{_SELECTORS} across multiple resources in the match block are not applicable"
        # one admission policy has one selector of namespaces for all its resources
        if any(block.resources.namespaces != blocks[0].resources.namespaces for block in blocks):
            yield "Namespaces across multiple resources in the match block are not applicable"


def _of_exclude(exclude: MatchBlocks, where: str) -> Iterator[str]:
    yield from _of_blocks(exclude.blocks)
    for block in exclude.blocks:
        resources = block.resources
        if resources.kinds and resources.namespaces:
            yield "excluding a resource within a namespace is not applicable"
        if not resources.kinds and (not resources.namespaces or resources.name or resources.names):
            yield "excluding without kinds is not applicable"
    if len(exclude.all) > 1:
        yield f"multiple 'all' in the {where} is not applicable"
    if any(_has_selector(block.resources) for block in exclude.blocks):
        yield f"{_SELECTORS} in the exclude block is not applicable"


def _of_blocks(blocks: Iterable[ResourceFilter]) -> Iterator[str]:
    for block in blocks:
        resources = block.resources
        if not block.user_info.is_empty:
            yield "Roles / ClusterRoles / Subjects in `any/all` is not applicable"
        if resources.annotations:
            yield "Annotations in resource description is not applicable"
        if has_wildcard(resources.name) or any(map(has_wildcard, resources.names)):
            yield "wildcards in resource name is not applicable"
        if any(map(has_wildcard, resources.namespaces)):
            yield "wildcards in namespace name is not applicable"


def _of_exception(exception: PolicyException) -> Iterator[str]:
    spec = exception.spec
    if any(len(each.rule_names) > 1 for each in spec.exceptions):
        yield "multiple ruleNames in PolicyException is not applicable"
    if spec.conditions is not None:
        yield "Conditions in PolicyException is not applicable"
    yield from _of_exclude(spec.match, "PolicyException's match block")


def _has_selector(resources: ResourceDescription) -> bool:
    return resources.selector is not None or resources.namespace_selector is not None
