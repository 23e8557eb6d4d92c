"""Checks of generate blocks: one source, a complete target in the right scope, and what may not change on update.

This module must not generate anything.
(Kyverno: api/kyverno/v1, pkg/policy/generate, pkg/validation/policy)
"""

from __future__ import annotations

from typing import Any, Final

from pyverno.compiler.validation.actions import check_anchors
from pyverno.compiler.validation.findings import Findings
from pyverno.compiler.validation.match import scope_of
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.yaml.fieldpath import Path
from pyverno.lang.template import has_variables
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.policy.generate import Clone, Generate, GeneratePattern
from pyverno.policy.rule import Rule

__all__ = ["check_generate", "check_immutable"]


def check_generate(rule: Rule, generate: Generate, policy: ClusterPolicy, findings: Findings, kinds: KindTable) -> None:
    """Check a generate block."""
    pattern, path = generate.pattern, generate.path
    sources = (
        pattern.data is not None,
        pattern.clone != Clone(),
        pattern.clone_list.kinds is not None,
        generate.foreach is not None,
    )
    if sum(sources) > 1:
        text = "only one of generate patterns(data, clone, cloneList and foreach) can be specified"
        findings.error("generate-source", path, text)
    elif generate.foreach is not None:
        for entry in generate.foreach:
            _check_pattern(entry.pattern, entry.path, policy, findings, kinds)
    else:
        _check_pattern(pattern, path, policy, findings, kinds)
    if rule.cel_preconditions:
        findings.error("cel-preconditions", rule.path, "celPrecondition can only be used with validate.cel")
    if rule.match.flat is not None and pattern.kind and pattern.kind in rule.match.flat.resources.kinds:
        text = "generation kind and match resource kind should not be the same"
        findings.error("generate-kind", path, text)


def _check_pattern(
    pattern: GeneratePattern, path: Path, policy: ClusterPolicy, findings: Findings, kinds: KindTable
) -> None:
    if policy.is_namespaced:
        _check_own_namespace(pattern, path, policy.namespace or "", findings, kinds)
    if pattern.kind:
        _check_scope(pattern, path, findings, kinds)
    if not pattern.clone_list.kinds:
        for name, value in (("kind", pattern.kind), ("name", pattern.name), ("apiVersion", pattern.api_version)):
            if not value:
                findings.error("generate-target", (*path, name), f"{name} can not be empty")
    else:
        _check_clone_list(pattern, path, policy, findings, kinds)
    _check_variables(pattern, path, findings)
    if pattern.data is not None:
        _check_data(pattern, path, findings)
    selector = pattern.clone_list.selector
    if selector is not None and has_wildcard(str(selector)):
        findings.error("generate-selector", (*path, "cloneList", "selector"), "wildcard characters `*/?` not supported")


def _check_data(pattern: GeneratePattern, path: Path, findings: Findings) -> None:
    found = Findings(findings.source)
    check_anchors(pattern.data, (*path, "data"), found, frozenset())
    for error in found.errors.values():
        text = f"anchors not supported on generate resources: {error.message}"
        findings.error("generate-anchor", (*path, "data"), text)


def _selector(pattern: GeneratePattern) -> str:
    return f"{pattern.api_version}/{pattern.kind}" if pattern.api_version else pattern.kind


def _known_scope(selector: str, kinds: KindTable) -> bool | None:
    return None if has_variables(selector) else scope_of(selector, kinds)


def _check_scope(pattern: GeneratePattern, path: Path, findings: Findings, kinds: KindTable) -> None:
    # Kyverno offline knows no cluster-scoped kinds and requires a namespace every time; here known kinds decide.
    cluster_scoped = _known_scope(_selector(pattern), kinds)
    if cluster_scoped is False and not pattern.namespace:
        text = "target namespace must be set for a namespaced resource"
        findings.error("generate-namespace", (*path, "namespace"), text)
    if cluster_scoped is True and pattern.namespace:
        text = "target namespace must not be set for a cluster-wide resource"
        findings.error("generate-namespace", (*path, "namespace"), text)


def _check_own_namespace(
    pattern: GeneratePattern, path: Path, namespace: str, findings: Findings, kinds: KindTable
) -> None:
    problem = ""
    if _known_scope(_selector(pattern), kinds):
        problem = f"the target must be a namespaced resource: {pattern.api_version}/{pattern.kind}"
    elif pattern.namespace != namespace:
        problem = (
            "a namespaced policy cannot generate resources in other namespaces, "
            f"expected: {namespace}, received: {pattern.namespace}"
        )
    elif pattern.clone.name and pattern.clone.namespace != namespace:
        problem = (
            "a namespaced policy cannot clone resources from other namespaces, "
            f"expected: {namespace}, received: {pattern.clone.namespace}"
        )
    if problem:
        findings.error("generate-scope", (*path, "namespace"), f"target resource scope mismatched: {problem} ")


def _check_clone_list(
    pattern: GeneratePattern, path: Path, policy: ClusterPolicy, findings: Findings, kinds: KindTable
) -> None:
    clones, place = pattern.clone_list, (*path, "cloneList")
    scopes = {_known_scope(kind, kinds) for kind in clones.kinds or ()}
    if policy.is_namespaced:
        for kind in clones.kinds or ():
            if _known_scope(kind, kinds):
                text = f"the source in cloneList must be a namespaced resource: {kind}"
                findings.error("generate-scope", (*place, "kinds"), text)
        if clones.namespace != (policy.namespace or ""):
            text = (
                "a namespaced policy cannot clone resources from other namespace, "
                f"expected: {policy.namespace}, received: {clones.namespace}"
            )
            findings.error("generate-scope", (*place, "namespace"), text)
    if True in scopes and False in scopes:
        findings.error("generate-scope", (*place, "kinds"), "mixed scope of target resources is forbidden")
    if scopes == {False} and not clones.namespace:
        text = "namespace is required for namespaced target resources"
        findings.error("generate-namespace", (*place, "namespace"), text)
    if scopes == {True} and clones.namespace and not policy.is_namespaced:
        text = "namespace is forbidden for cluster-wide target resources"
        findings.error("generate-namespace", (*place, "namespace"), text)


def _check_variables(pattern: GeneratePattern, path: Path, findings: Findings) -> None:
    clones = pattern.clone_list
    texts = (
        pattern.kind,
        pattern.api_version,
        pattern.clone.name,
        pattern.clone.namespace,
        clones.namespace,
        *(clones.kinds or ()),
        str(clones.selector or ""),
    )
    if any(has_variables(text) for text in texts):
        where = ".".join(
            ("spec.rules[*].generate", *(() if "foreach" not in path else ("foreach",)), "clone/cloneList")
        )
        findings.warn(f"variables in {where} would lead to incorrect synchronization behavior")


def check_immutable(policy: ClusterPolicy, old: ClusterPolicy, findings: Findings) -> None:
    """Check that an update leaves alone what generated resources hang on."""
    synchronizes = any(isinstance(rule.action, Generate) and rule.action.synchronize for rule in old.spec.rules)
    before = [_immutable_parts(rule, synchronizes) for rule in old.spec.rules if isinstance(rule.action, Generate)]
    after = [_immutable_parts(rule, synchronizes) for rule in policy.spec.rules if isinstance(rule.action, Generate)]
    if any(all(not equal(new, generate) for new, _ in after) for generate, _ in before):
        findings.warn(
            "no synchronization will be performed to the old target resource upon policy updates: "
            "changes in the generate rule pattern could result in stale targets"
        )
    elif any(all(not equal(new, rest) for _, new in after) for _, rest in before):
        text = "changes of immutable fields of a rule spec in a generate rule is disallowed"
        findings.error("generate-immutable", ("spec", "rules"), text)


_MUTABLE: Final = ("synchronize", "data", "foreach", "orphanDownstreamOnPolicyDelete", "generateExisting")
_DEFAULTS: Final = {"skipBackgroundRequests": True, "method": "GET"}
"""Defaults of Kyverno's definitions that ours lack: a cluster may hold policies stored under both."""


def _immutable_parts(rule: Rule, synchronizes: bool) -> tuple[JSONObject, JSONObject]:
    generate = {key: value for key, value in rule.raw.get("generate", {}).items() if key not in _MUTABLE}
    dropped = ("generate",) if synchronizes else ("generate", "match")
    rest = {key: value for key, value in rule.raw.items() if key not in dropped}
    return _without_defaults(generate), _without_defaults(rest)


def _without_defaults(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_defaults(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_defaults(each) for key, each in value.items() if each != _DEFAULTS.get(key)}
    return {key: each for key, each in kept.items() if each not in (None, "", {}, [])}
