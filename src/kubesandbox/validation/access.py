"""Roles and their bindings."""

from __future__ import annotations

from typing import Final

from kubesandbox.objects.fielderrors import go_struct, invalid, required, unsupported
from kubesandbox.validation.check import Check, Errors, form, label_selector
from kubesandbox.validation.names import dns_subdomain_problems, path_segment_problems
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.status import FieldError

__all__ = ["binding", "binding_update", "cluster_role", "role"]

_GROUP: Final = "rbac.authorization.k8s.io"


def _rule(rule: JSONObject, path: str, errors: Errors, *, is_namespaced: bool) -> None:
    if not rule.get("verbs"):
        errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        if is_namespaced:
            what = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, what))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            what = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{path}.nonResourceURLs", urls, what))
        return
    if not rule.get("apiGroups"):
        errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))


def role(body: JSON, path: str, errors: Errors) -> None:
    """Check a Role."""
    for index, rule in enumerate(body.get("rules") or ()):
        _rule(rule, f"rules[{index}]", errors, is_namespaced=True)


def cluster_role(body: JSON, path: str, errors: Errors) -> None:
    """Check a ClusterRole."""
    for index, rule in enumerate(body.get("rules") or ()):
        _rule(rule, f"rules[{index}]", errors, is_namespaced=False)
    aggregation = body.get("aggregationRule")
    if aggregation is None:
        return
    place = "aggregationRule.clusterRoleSelectors"
    if not aggregation.get("clusterRoleSelectors"):
        what = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.append(required(place, what))
    for index, selector in enumerate(aggregation.get("clusterRoleSelectors") or ()):
        label_selector(selector, f"{place}[{index}]", errors)


def binding(*, is_namespaced: bool) -> Check:
    """Return the check of a RoleBinding or ClusterRoleBinding."""
    kinds = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)

    def check(body: JSON, path: str, errors: Errors) -> None:
        reference = body.get("roleRef") or {}
        if reference.get("apiGroup") != _GROUP:
            errors.append(unsupported("roleRef.apiGroup", reference.get("apiGroup") or "", (_GROUP,)))
        if reference.get("kind") not in kinds:
            errors.append(unsupported("roleRef.kind", reference.get("kind") or "", kinds))
        if not reference.get("name"):
            errors.append(required("roleRef.name"))
        else:
            form(path_segment_problems)(reference["name"], "roleRef.name", errors)
        for index, subject in enumerate(body.get("subjects") or ()):
            _subject(subject, f"subjects[{index}]", errors, is_namespaced=is_namespaced)

    return check


def _subject(subject: JSONObject, path: str, errors: Errors, *, is_namespaced: bool) -> None:
    name, kind, group = subject.get("name") or "", subject.get("kind") or "", subject.get("apiGroup") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    if kind == "ServiceAccount":
        if name:
            form(dns_subdomain_problems)(name, f"{path}.name", errors)
        if group:
            errors.append(unsupported(f"{path}.apiGroup", group, ("",)))
        if not is_namespaced and not subject.get("namespace"):
            errors.append(required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if group != _GROUP:
            errors.append(unsupported(f"{path}.apiGroup", group, (_GROUP,)))
    else:
        errors.append(unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))


def binding_update(body: JSONObject, old: JSONObject, subresource: str, errors: Errors) -> bool:
    """Check that a binding still binds the same role."""
    if not equal(body.get("roleRef"), old.get("roleRef")):
        shown = go_struct(body.get("roleRef") or {}, ("APIGroup", "Kind", "Name"))
        errors.append(FieldError("roleRef", "Invalid value", "cannot change roleRef", shown))
    return False
