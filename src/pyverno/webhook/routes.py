"""The policies behind each path of the webhook; the paths are those of Kyverno's webhook configurations.

A route is both parsed from and rendered to a path, so that the server and the webhook configurations cannot disagree.
One table holds all kinds: a kind that is served here is in the configurations as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from pyverno.engine.rule import PolicyInfo
from pyverno.kube.names import MAX_NAME
from pyverno.policy.kinds import POLICY_KINDS, RULE_KINDS

__all__ = ["CEL_ROUTES", "Route", "WebhookType", "read_route"]

_FINEGRAINED = "finegrained"
_MEMO = 1024
"""Size of the cache of paths: the API server uses few."""

_FAILURE = {"ignore": "Ignore", "fail": "Fail"}


class WebhookType(StrEnum):
    """The type of a webhook: mutating or validating."""

    MUTATE = "mutate"
    VALIDATE = "validate"


@dataclass(frozen=True, slots=True)
class Route:
    """The policies behind one path.

    `kinds` are the policy kinds; `failure_policy` restricts to `Ignore` or `Fail` ("" = both); `names` to these names
    ("" as `namespace` = cluster-wide ones; None = all); `is_finegrained` marks policies with a path of their own.

    >>> read_route("/validate/fail/finegrained/team-a/check-ports").path
    '/validate/fail/finegrained/team-a/check-ports'
    """

    webhook_type: WebhookType
    kinds: frozenset[str]
    failure_policy: str = ""
    names: tuple[str, ...] | None = None
    namespace: str = ""
    is_finegrained: bool = False

    def takes(self, policy: PolicyInfo) -> bool:
        """Return whether this route includes a policy, whichever requests the policy matches."""
        if policy.kind not in self.kinds:
            return False
        if self.failure_policy and policy.failure_policy != self.failure_policy:
            return False
        if self.names is None:
            return True
        return policy.name in self.names and (not self.is_finegrained or policy.namespace == self.namespace)

    @property
    def path(self) -> str:
        """The path of the route."""
        if not self.kinds & RULE_KINDS:
            return "/".join((_CEL_PATHS[self.webhook_type, self.kinds], *(self.names or ())))
        parts = ["", self.webhook_type.value]
        if self.failure_policy:
            parts.append(self.failure_policy.lower())
        if self.is_finegrained:
            parts.extend((_FINEGRAINED, *((self.namespace,) if self.namespace else ()), *(self.names or ())))
        return "/".join(parts)

    def with_names(self, names: tuple[str, ...]) -> Route:
        """Return the same route for some policies, sorted by name."""
        return replace(self, names=tuple(sorted(names)))


CEL_ROUTES: Mapping[str, Route] = {
    prefix: Route(WebhookType(webhook), frozenset({row.kind}), names=())
    for row in POLICY_KINDS
    for prefix, webhook in row.routes
}
"""The path prefix of every CEL kind, which the names of policies follow."""

_CEL_PATHS = {(route.webhook_type, route.kinds): prefix for prefix, route in CEL_ROUTES.items()}


def read_route(path: str) -> Route | None:
    """Parse a path; None when it is not a route.

    >>> read_route("/vpol/check-a/check-b").names
    ('check-a', 'check-b')
    >>> read_route("/elsewhere") is None
    True
    """
    return _known_route(path) if len(path) <= MAX_NAME else _read_route(path)


def _read_route(path: str) -> Route | None:
    parts = path.removeprefix("/").split("/")
    if parts[0] in ("validate", "mutate"):
        return _legacy(WebhookType(parts[0]), parts[1:])
    width = 2 if len(parts) > 1 and f"/{parts[0]}/{parts[1]}" in CEL_ROUTES else 1
    route = CEL_ROUTES.get("/" + "/".join(parts[:width]))
    names = tuple(parts[width:])
    return replace(route, names=names) if route is not None and names and all(names) else None


_known_route = lru_cache(_MEMO)(_read_route)


def _legacy(webhook_type: WebhookType, rest: list[str]) -> Route | None:
    route = Route(webhook_type, RULE_KINDS)
    if not rest:
        return route
    failure, *rest = rest
    if failure not in _FAILURE:
        return None
    route = replace(route, failure_policy=_FAILURE[failure])
    match rest:
        case []:
            return route
        case ["finegrained", name] if name:
            return replace(route, names=(name,), is_finegrained=True)
        case ["finegrained", namespace, name] if namespace and name:
            return replace(route, names=(name,), namespace=namespace, is_finegrained=True)
    return None
