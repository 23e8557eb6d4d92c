"""Aggregated ClusterRoles: their rules are those of the ClusterRoles that their selectors select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys
from kubesandbox.controllers.objects import at, key_of, labels_of, name_of
from kubesandbox.storage.store import Change, Key
from pyverno.kube.json import JSONObject, equal
from pyverno.kube.selector import compile_selector

__all__ = ["ClusterRoles", "aggregated_rules"]

ROLES = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoles:
    """Writes the rules of aggregated roles."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Watches all ClusterRoles: any change may affect every aggregated role."""
        return {ROLES: self._aggregate}

    def _aggregate(self, change: Change) -> Iterable[Key]:
        bodies = [change.state.body, *([change.before.body] if change.before else [])]
        return [
            key_of(ROLES, role)
            for role in self._context.client.list(ROLES)
            if "aggregationRule" in role
            and (name_of(role) == change.state.key.name or any(_selects(role, body) for body in bodies))
        ]

    async def reconcile(self, key: Key) -> float | None:
        """Write the rules of one aggregated role if they have changed."""
        role = self._context.client.get(ROLES, key.name)
        if role is None or "aggregationRule" not in role:
            return None
        rules = aggregated_rules(role, self._context.client.list(ROLES))
        if not equal(role.get("rules") or [], rules):
            await self._context.client.update(ROLES, {**role, "rules": rules})
        return None


def aggregated_rules(role: JSONObject, roles: Sequence[JSONObject]) -> list[JSONObject]:
    """Return the rules of an aggregated role: selector by selector, in order of names, each rule once.

    >>> part = {"metadata": {"name": "part", "labels": {"a": "b"}}, "rules": [{"verbs": ["get"]}]}
    >>> selectors = [{"matchLabels": {"a": "b"}}]
    >>> whole = {"metadata": {"name": "all"}, "aggregationRule": {"clusterRoleSelectors": selectors}}
    >>> aggregated_rules(whole, [whole, part])
    [{'verbs': ['get']}]
    """
    found: list[JSONObject] = []
    for selector in _selectors(role):
        selects = compile_selector(selector)
        for other in sorted(roles, key=name_of):
            if name_of(other) != name_of(role) and selects(labels_of(other)):
                rules: list[JSONObject] = other.get("rules") or []
                found.extend(rule for rule in rules if not any(equal(rule, known) for known in found))
    return found


def _selectors(role: JSONObject) -> list[JSONObject]:
    found: list[JSONObject] = at(role, "aggregationRule", "clusterRoleSelectors", default=[])
    return found


def _selects(role: JSONObject, other: JSONObject) -> bool:
    return any(compile_selector(selector)(labels_of(other)) for selector in _selectors(role))
