"""Checks of a policy as a whole: names, modes, deprecated fields, timeouts, failure action overrides.

This module must not look into rules further than their names and actions.
(Kyverno: api/kyverno/v1/spec_types.go, pkg/validation/policy)
"""

from __future__ import annotations

from pyverno.compiler.autogen.patterns import ANNOTATION
from pyverno.compiler.validation.findings import Findings
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.kube.yaml.fieldpath import Path, path_text
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.failureaction import FailureAction, FailureActionOverride
from pyverno.policy.mutate import Mutate
from pyverno.policy.validate import Validate

__all__ = ["check_name", "check_spec"]

MAX_NAME = 63
_TOO_LONG = "may not be more than 63 bytes"


def check_name(name: str, findings: Findings) -> None:
    """Check that a policy's name fits into a label value."""
    if len(name.encode()) > MAX_NAME:
        findings.error("name", ("metadata", "name"), f"Too long: {_TOO_LONG}")


def check_spec(policy: ClusterPolicy, findings: Findings) -> None:
    """Check everything of a policy that does not belong to one rule."""
    if policy.namespace and not policy.is_namespaced:
        text = "A clusterpolicy should not have the namespace defined"
        findings.warn(text)
        findings.error("namespace", ("metadata", "namespace"), text)
    if policy.annotations.get(ANNOTATION) == "all":
        text = "Autogen annotation does not support 'all' anymore, remove the annotation or set it to a valid value"
        findings.error("autogen-annotation", ("metadata", "annotations", ANNOTATION), text)
    check_name(policy.name, findings)
    _check_rule_names(policy, findings)
    _check_fields(policy, findings)
    _check_modes(policy, findings)
    _check_targets(policy, findings)
    _check_overrides(policy, findings)


def _check_rule_names(policy: ClusterPolicy, findings: Findings) -> None:
    seen: set[str] = set()
    for rule in policy.spec.rules:
        path = (*rule.path, "name")
        if rule.name in seen:
            findings.error("rule-name", path, f"Duplicate rule name: '{rule.name}'")
        seen.add(rule.name)
        if len(rule.name.encode()) > MAX_NAME:
            findings.error("rule-name", path, f"Too long: {_TOO_LONG}")


def _check_fields(policy: ClusterPolicy, findings: Findings) -> None:
    raw = policy.spec.raw
    webhook = raw.get("webhookConfiguration") or {}
    for old, new in (("webhookTimeoutSeconds", "timeoutSeconds"), ("failurePolicy", "failurePolicy")):
        if raw.get(old) is not None and webhook.get(new) is not None:
            text = f"remove the deprecated field and use spec.webhookConfiguration.{new} instead"
            findings.error("deprecated-field", ("spec", old), text)
    timeouts: tuple[tuple[Path, int | None], ...] = (
        (("spec", "webhookTimeoutSeconds"), raw.get("webhookTimeoutSeconds")),
        (("spec", "webhookConfiguration", "timeoutSeconds"), webhook.get("timeoutSeconds")),
    )
    for path, seconds in timeouts:
        if seconds is not None and not 1 <= seconds <= 30:
            findings.error("timeout", path, "the timeout value must be between 1 and 30 seconds")


def _check_modes(policy: ClusterPolicy, findings: Findings) -> None:
    spec = policy.spec
    if spec.admission:
        return
    if not spec.background:
        text = "disabling both admission and background processing is not allowed"
        findings.error("modes", ("spec", "admission"), text)
    if any(not isinstance(rule.action, Validate) for rule in spec.rules):
        text = "disabling admission processing is only allowed with validation policies"
        findings.error("modes", ("spec", "admission"), text)


def _check_targets(policy: ClusterPolicy, findings: Findings) -> None:
    for index, rule in enumerate(policy.spec.rules):
        mutate = rule.action
        if not isinstance(mutate, Mutate):
            continue
        on_update = policy.spec.mutate_existing_on_policy_update or mutate.mutate_existing_on_policy_update
        if on_update and not mutate.targets:
            text = f"rules[{index}].mutate.targets has to be specified when mutateExistingOnPolicyUpdate is set"
            findings.error("mutate-targets", mutate.path, text)
        for target in mutate.targets or () if policy.is_namespaced else ():
            if target.namespace and target.namespace != policy.namespace:
                text = (
                    "This field can be ignored or should have value of the namespace where the policy is being created"
                )
                findings.error("mutate-targets", (*target.path, "namespace"), text)


def _check_overrides(policy: ClusterPolicy, findings: Findings) -> None:
    spec, path = policy.spec, ("spec", "validationFailureActionOverrides")
    if policy.is_namespaced:
        if spec.failure_action_overrides:
            text = "Use of validationFailureActionOverrides is supported only with ClusterPolicy"
            findings.error("overrides", path, text)
        return
    _check_conflicts(spec.failure_action_overrides, path, findings)
    for rule in spec.rules:
        if isinstance(rule.action, Validate):
            place = (*rule.path, "validate", "failureActionOverrides")
            _check_conflicts(rule.action.failure_action_overrides, place, findings)


def _check_conflicts(overrides: tuple[FailureActionOverride, ...], path: Path, findings: Findings) -> None:
    names: dict[FailureAction, dict[str, None]] = {action: {} for action in FailureAction}
    patterns: dict[FailureAction, dict[str, None]] = {action: {} for action in FailureAction}
    for index, override in enumerate(overrides):
        place = (*path, index, "namespaces")
        if override.action is None:
            findings.error("overrides", (*path, index), "invalid action")
            continue
        other = FailureAction.ENFORCE if override.action is FailureAction.AUDIT else FailureAction.AUDIT
        for namespace in override.namespaces:
            (patterns if has_wildcard(namespace) else names)[override.action].setdefault(namespace)
        shared = sorted(set(override.namespaces) & names[other].keys())
        if shared:
            text = f"conflicting namespaces found in path: {path_text(place)}: {', '.join(shared)}"
            findings.error("overrides", place, text)
        for text in _wildcard_conflicts(names, patterns):
            findings.error("overrides", place, text)


def _wildcard_conflicts(
    names: dict[FailureAction, dict[str, None]], patterns: dict[FailureAction, dict[str, None]]
) -> list[str]:
    found: list[str] = []
    for action, other in ((FailureAction.AUDIT, FailureAction.ENFORCE), (FailureAction.ENFORCE, FailureAction.AUDIT)):
        for pattern in patterns[action]:
            found += [
                f"wildcard pattern '{pattern}' matches with namespace '{name}'"
                for name in names[other]
                if wildcard_match(pattern, name)
            ]
            found += [
                f"wildcard pattern '{pattern}' conflicts with the pattern '{theirs}'"
                for theirs in patterns[other]
                if wildcard_match(pattern, theirs)
            ]
    return found
