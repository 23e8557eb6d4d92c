"""Validation: everything that Kyverno's policy webhook rejects or warns about, collected rather than stopped at.

`validate` judges one decoded policy. The texts are upstream's; the place comes from the document. This module only
puts the checks of its siblings in order, and must never evaluate a policy.
(Kyverno: pkg/validation/policy/validate.go)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.validation.actions import check_elements, check_mutate, check_text_values, check_validate
from pyverno.compiler.validation.conditions import check_conditions
from pyverno.compiler.validation.context import check_context
from pyverno.compiler.validation.findings import Findings, Problems
from pyverno.compiler.validation.kinds import check_kinds
from pyverno.compiler.validation.lints import lint
from pyverno.compiler.validation.match import check_match
from pyverno.compiler.validation.spec import check_spec
from pyverno.compiler.validation.variables import check_variables
from pyverno.kube.kinds import KindTable
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Generate
from pyverno.policy.kinds import KNOWN_KINDS
from pyverno.policy.mutate import Mutate
from pyverno.policy.rule import Rule, VerifyImages
from pyverno.policy.validate import Validate

if TYPE_CHECKING:
    from pyverno.policy.decode import AnyPolicy

__all__ = ["Problems", "validate"]


def validate(
    policy: AnyPolicy,
    *,
    old: AnyPolicy | None = None,
    kinds: KindTable = KNOWN_KINDS,
    kinds_are_complete: bool = False,
) -> Problems:
    """Return all errors and warnings of a decoded policy.

    `old` is the policy that an update replaces. `kinds` has the scope of kinds; only with
    `kinds_are_complete` (a table that came from a cluster) are unknown kinds warned about. Never raises for a bad
    policy.
    """
    findings = Findings(policy.document)
    match policy:
        case ClusterPolicy():
            expanded = expand(policy)
            for warning in lint(policy, expanded):
                findings.warn(warning)
            check_variables(policy, expanded, findings)
            check_spec(policy, findings)
            if isinstance(old, ClusterPolicy):
                # imported here and below, because most policies only validate
                from pyverno.compiler.validation.generate import check_immutable

                check_immutable(policy, old, findings)
            known = kinds if kinds_are_complete else None
            for rule in policy.spec.rules:
                _check_rule(rule, policy, findings, kinds)
            for rule in (*policy.spec.rules, *_copies(policy, expanded)):
                check_kinds(rule, findings, background=policy.spec.background, kinds=known)
                check_text_values(rule, findings)
        case _ if policy.api_version.startswith("kyverno.io/"):
            # imported here and below, because most runs do without such kinds
            from pyverno.compiler.validation.documents import check_document

            check_document(policy, findings, kinds)
        case _:
            from pyverno.compiler.validation.cel import check_cel_document

            check_cel_document(policy, findings)
    return findings.problems()


def _copies(policy: ClusterPolicy, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rules that autogen made; all other checks of a written rule hold for its copies too."""
    written = {id(rule) for rule in policy.spec.rules}
    return tuple(rule for rule in rules if id(rule) not in written)


def _check_rule(rule: Rule, policy: ClusterPolicy, findings: Findings, kinds: KindTable) -> None:
    check_match(rule, findings, namespaced=policy.is_namespaced, kinds=kinds)
    check_conditions(rule, findings, version=policy.api_version.rpartition("/")[2])
    check_elements(rule, findings)
    check_context(rule, findings, namespaced=policy.is_namespaced)
    _check_action(rule, policy, findings, kinds)


def _check_action(rule: Rule, policy: ClusterPolicy, findings: Findings, kinds: KindTable) -> None:
    match rule.action:
        case Validate() as action:
            check_validate(rule, action, findings)
            if action.manifests is not None:
                from pyverno.compiler.validation.images import check_attestors

                check_attestors(action.manifests.attestors, findings)
        case Mutate() as action:
            check_mutate(rule, action, findings)
        case Generate() as action:
            from pyverno.compiler.validation.generate import check_generate

            check_generate(rule, action, policy, findings, kinds)
        case VerifyImages() as action:
            from pyverno.compiler.validation.images import check_images

            check_images(rule, action, policy, findings)
    if rule.image_extractors is not None and not isinstance(rule.action, VerifyImages):
        text = f"Invalid rule spec for rule '{rule.name}', imageExtractors can only be defined for verifyImages rule"
        findings.error("image-extractor", (*rule.path, "imageExtractors"), text)
