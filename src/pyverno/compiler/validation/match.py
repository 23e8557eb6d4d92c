"""Checks of match and exclude: forms, users, selectors, kinds, and sections that leave nothing over.

This module must not match resources.
(Kyverno: api/kyverno/v1, pkg/validation/policy)
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.compiler.validation.findings import Findings
from pyverno.errors import ValueSyntaxError
from pyverno.kube.gvk import GVK, parse_kind_selector
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.wildcard import has_wildcard
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.kube.yaml.fieldpath import Path
from pyverno.policy.match import MatchBlocks, ResourceDescription, ResourceFilter, Subject, UserInfo
from pyverno.policy.rule import Rule

__all__ = ["check_match", "check_sections", "forbid_user_info", "scope_of"]

_SUBJECT_KINDS = ("User", "Group", "ServiceAccount")


def scope_of(selector: str, kinds: KindTable) -> bool | None:
    """Return True for a kind that is known to be cluster-scoped, False for a namespaced one, None for unknown kinds."""
    parsed = parse_kind_selector(selector)
    if has_wildcard(parsed.kind):
        return None
    found = [
        info
        for info in kinds.by_kind(parsed.kind)
        if parsed.matches(GVK(info.group, info.version, info.kind), parsed.subresource)
    ]
    return not any(info.namespaced for info in found) if found else None


def check_match(rule: Rule, findings: Findings, *, namespaced: bool, kinds: KindTable) -> None:
    """Check both sections of one rule."""
    for name, section in (("match", rule.match), ("exclude", rule.exclude)):
        if section is not None:
            _check_forms(name, section, findings)
            check_sections(section, findings, namespaced=namespaced, kinds=kinds)
    _check_specified(rule, findings)
    if rule.exclude is not None and _is_empty_set(rule.match, rule.exclude):
        findings.error("match-empty-set", rule.path, "Rule is matching an empty set")


def check_sections(section: MatchBlocks, findings: Findings, *, namespaced: bool, kinds: KindTable) -> None:
    """Check every block of a match or exclude section."""
    if section.any and section.all:
        findings.error("match-form", section.path, "Can't specify any and all together")
    for block in section.blocks:
        _check_user_info(block, findings)
        _check_resources(block.resources, findings, namespaced=namespaced, kinds=kinds)


def forbid_user_info(section: MatchBlocks, findings: Findings) -> bool:
    """Report user information where no request can supply it; return whether there was any."""
    found = False
    for block in section.blocks:
        for field in _user_fields(block.user_info):
            findings.error("user-info", (*block.path, field), "Usage of user info is forbidden")
            found = True
    return found


def _user_fields(user: UserInfo) -> Iterator[str]:
    if user.roles:
        yield "roles"
    if user.cluster_roles:
        yield "clusterRoles"
    if user.subjects:
        yield "subjects"


def _check_forms(name: str, section: MatchBlocks, findings: Findings) -> None:
    if (section.any or section.all) and section.flat is not None and not section.flat.resources.is_empty:
        findings.error("match-form", section.path, f"can't specify any/all together with {name} resources")


def _check_specified(rule: Rule, findings: Findings) -> None:
    match = rule.match
    blocks = match.any or match.all or (match.flat or ResourceFilter(path=match.path),)
    for block in blocks:
        if block.resources.is_empty:
            findings.error("match-missing", block.path, "match resources not specified")


def _check_user_info(block: ResourceFilter, findings: Findings) -> None:
    for subject in block.user_info.subjects:
        _check_subject(subject, findings)
    for index, role in enumerate(block.user_info.roles):
        if role.count(":") != 1:
            findings.error(
                "match-role", (*block.path, "roles", index), "Role is expected to be in namespace:name format"
            )


def _check_subject(subject: Subject, findings: Findings) -> None:
    if subject.kind not in _SUBJECT_KINDS:
        text = "kind must be 'User', 'Group', or 'ServiceAccount'" if subject.kind else "a kind is required"
        findings.error("match-subject", (*subject.path, "kind"), text)
    if not subject.name:
        findings.error("match-subject", (*subject.path, "name"), "a name is required")
    if subject.kind == "ServiceAccount" and not subject.namespace:
        findings.error(
            "match-subject", (*subject.path, "namespace"), "namespace is required when Kind is ServiceAccount"
        )


def _check_resources(resources: ResourceDescription, findings: Findings, *, namespaced: bool, kinds: KindTable) -> None:
    path = resources.path
    if resources.name and resources.names:
        findings.error("match-names", path, "Both name and names can not be specified together")
    if resources.selector is not None:
        _check_selector(resources.selector, (*path, "selector"), findings, is_filter=True)
    if resources.namespace_selector is not None:
        _check_selector(resources.namespace_selector, (*path, "namespaceSelector"), findings, is_filter=False)
    if not namespaced:
        return
    if resources.namespaces:
        findings.error(
            "match-namespaces", (*path, "namespaces"), "Filtering namespaces not allowed in namespaced policies"
        )
    for index, kind in enumerate(resources.kinds):
        if scope_of(kind, kinds):
            findings.error(
                "match-scope",
                (*path, "kinds", index),
                f"Cluster wide resource '{kind}' not allowed in namespaced policy",
            )


def _check_selector(selector: JSONObject, path: Path, findings: Findings, *, is_filter: bool) -> None:
    texts = [text for pair in (selector.get("matchLabels") or {}).items() for text in pair]
    for expression in selector.get("matchExpressions") or ():
        texts += [expression["key"], *(expression.get("values") or ())]
    if any(has_wildcard(text) or "{{" in text for text in texts):
        return
    from pyverno.kube.selector import compile_selector

    try:
        compile_selector(selector)
    except ValueSyntaxError as error:
        findings.error("match-selector", path, error.message)
        return
    if is_filter and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        findings.error("match-selector", path, "The requirements are not specified in selector")


def _is_empty_set(match: MatchBlocks, exclude: MatchBlocks) -> bool:
    """Return whether everything that matches is excluded, as far as upstream looks."""
    if match.all or exclude.all:
        return False
    if match.any and exclude.any:
        excluded = [_normal(block) for block in exclude.any]
        return any(_normal(block) in excluded for block in match.any)
    if exclude.is_empty and not exclude.any:
        return False
    # COMPAT: of a flat match and an exclude.any (or the other way) upstream compares the flat blocks alone.
    return _flat_is_empty_set(match.flat or ResourceFilter(), exclude.flat or ResourceFilter())


def _normal(block: ResourceFilter) -> tuple[object, ...]:
    resources, user = block.resources, block.user_info
    subjects = tuple((each.kind, each.name, each.namespace, each.api_group) for each in user.subjects)
    return (
        *(getattr(resources, name) for name in _RESOURCE_PARTS),
        user.roles,
        user.cluster_roles,
        subjects,
    )


_RESOURCE_PARTS = (
    "kinds",
    "name",
    "names",
    "namespaces",
    "annotations",
    "selector",
    "namespace_selector",
    "operations",
)


def _flat_is_empty_set(match: ResourceFilter, exclude: ResourceFilter) -> bool:
    wanted, unwanted = match.resources, exclude.resources
    users, excluded_users = match.user_info, exclude.user_info
    subjects = [(each.kind, each.name, each.namespace, each.api_group) for each in users.subjects]
    excluded_subjects = [(each.kind, each.name, each.namespace, each.api_group) for each in excluded_users.subjects]
    pairs: tuple[tuple[object, object], ...] = (
        (users.roles, excluded_users.roles),
        (users.cluster_roles, excluded_users.cluster_roles),
        (subjects, excluded_subjects),
    )
    if not all(_covers(left, right) for left, right in pairs):
        return False
    if unwanted.name and not wildcard_match(unwanted.name, wanted.name):
        return False
    if unwanted.names:
        return any(wildcard_match(pattern, name) for name in wanted.names for pattern in unwanted.names)
    return (
        _covers(wanted.namespaces, unwanted.namespaces)
        and _covers(wanted.kinds, unwanted.kinds)
        and _selector_covers(wanted.selector, unwanted.selector)
        and _selector_covers(wanted.namespace_selector, unwanted.namespace_selector)
        and dict(wanted.annotations) == dict(unwanted.annotations)
    )


def _covers(wanted: object, unwanted: object) -> bool:
    """Return whether an exclude list leaves nothing of a match list; an absent exclude list excludes everything."""
    left, right = list(wanted), list(unwanted)  # type: ignore[call-overload]  # tuples and lists of plain values
    return not right or (bool(left) and all(each in right for each in left))


def _selector_covers(wanted: JSONObject | None, unwanted: JSONObject | None) -> bool:
    if wanted is None or unwanted is None:
        return wanted is unwanted
    labels, excluded = wanted.get("matchLabels") or {}, unwanted.get("matchLabels") or {}
    return _covers(wanted.get("matchExpressions") or [], unwanted.get("matchExpressions") or []) and (
        not excluded or (bool(labels) and all(excluded.get(key) == value for key, value in labels.items()))
    )
