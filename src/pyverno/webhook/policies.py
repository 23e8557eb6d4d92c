"""The policies of the webhook: one immutable set, and its subset for every route.

A store creates a new `Policies` after a change and swaps one reference; a request keeps the one it started with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyverno.engine.policyset import PolicySet
from pyverno.engine.rule import CompiledPolicy, Stage
from pyverno.kube.names import MAX_NAME
from pyverno.policy.kinds import CEL_MUTATION_KINDS, POLICY_KINDS, RULE_KINDS, Family, kind_of
from pyverno.webhook.routes import Route, WebhookType

__all__ = ["Policies"]

_MEMO_LIMIT = 1024
_SIDES = (False, True)
_NAMESPACED = frozenset(row.kind for row in POLICY_KINDS if row.namespaced)

Knows = Callable[[str, str, str], bool]
"""Returns whether the policy of a kind, namespace and name is known, or known to have been deleted."""

Place = tuple[str, str, str]
"""Kind, namespace and name of a policy."""


class Policies:
    """All compiled policies and exceptions; `own_paths` holds (kind, key) of those that have a path of their own.

    `knows` also covers policies that the API server enforces and deleted ones; by default it covers only this set.

    >>> from pyverno.webhook.routes import read_route
    >>> len(Policies().on(read_route("/validate/fail")))
    0
    """

    __slots__ = ("_account", "_for_account", "_knows", "_memo", "_missing", "_split", "all", "own_paths")

    def __init__(
        self,
        policies: PolicySet | None = None,
        own_paths: Iterable[tuple[str, str]] = (),
        knows: Knows | None = None,
        *,
        background_account: str = "",
    ) -> None:
        """Take the set of all policies, invalid ones included: their rules yield errors.

        `background_account` is the user that changes objects on behalf of policies ("" = none).
        """
        self._account = background_account
        self._for_account: dict[Route, PolicySet] = {}
        self.all = policies if policies is not None else PolicySet()
        self.own_paths = frozenset(own_paths)
        self._knows = knows or self._has
        self._memo: dict[Route, PolicySet] = {}
        self._missing: dict[tuple[Route, str], tuple[Place, ...]] = {}
        self._split: dict[Route, tuple[PolicySet, PolicySet]] = {}

    def on(self, route: Route) -> PolicySet:
        """Return the policies of a route; shared paths omit policies that have a path of their own."""
        found = self._memo.get(route)
        if found is None:
            found = PolicySet(
                [
                    policy
                    for policy in self.all.policies
                    if route.takes(policy.info)
                    and (route.names is not None or (policy.info.kind, policy.info.key) not in self.own_paths)
                ],
                self.all.exceptions,
            )
            if len(self._memo) >= _MEMO_LIMIT:  # callers choose the paths: they must not fill the memory
                self._memo = {}
            self._memo[route] = found
        return found

    def for_user(self, route: Route, username: str) -> PolicySet:
        """Return the policies of a route that apply to requests of a user.

        Kyverno: objects that the background controller writes are mutated only by CEL policies that opt in.
        """
        found = self.on(route)
        if not self._account or username != self._account or not route.kinds & CEL_MUTATION_KINDS:
            return found
        known = self._for_account.get(route)
        if known is None:
            asked = [each for each in found.policies if not all(rule.skips_background_requests for rule in each.rules)]
            if len(self._for_account) >= _MEMO_LIMIT:  # see `on`
                self._for_account = {}
            known = self._for_account[route] = PolicySet(asked, found.exceptions)
        return known

    def deciding(self, route: Route) -> PolicySet:
        """Return the policies of a route that can deny or warn."""
        return self._split_on(route)[0]

    def auditing(self, route: Route) -> PolicySet:
        """Return the audit-only policies of a route, whose results never change the response."""
        return self._split_on(route)[1]

    def _split_on(self, route: Route) -> tuple[PolicySet, PolicySet]:
        found = self._split.get(route)
        if found is None:
            asked = self.on(route)
            audits = [route.webhook_type is WebhookType.VALIDATE and _only_audits(policy) for policy in asked.policies]
            sides = (
                [each for each, later in zip(asked.policies, audits, strict=True) if later is side] for side in _SIDES
            )
            decide, tell = (PolicySet(side, asked.exceptions) for side in sides)
            found = decide, tell
            if len(self._split) >= _MEMO_LIMIT:  # see `on`
                self._split = {}
            self._split[route] = found
        return found

    def missing(self, route: Route, namespace: str = "") -> tuple[Place, ...]:
        """Return the unknown policies (kind, namespace, name) that a route names for a request in a namespace.

        They were deleted before we started, or a watch has not delivered them yet. Policies of other namespaces are
        omitted: they do not apply to the request.
        """
        if not route.names:
            return ()
        key = (route, namespace)
        found = self._missing.get(key)
        if found is None:
            found = tuple(place for place in _name_policies(route, namespace) if not self._knows(*place))
            if len(self._missing) >= _MEMO_LIMIT:  # see `on`
                self._missing = {}
            if len(namespace) <= MAX_NAME:
                self._missing[key] = found
        return found

    def _has(self, kind: str, namespace: str, name: str) -> bool:
        infos = (policy.info for policy in self.all.policies)
        return any((info.kind, info.namespace, info.name) == (kind, namespace, name) for info in infos)


def _only_audits(policy: CompiledPolicy) -> bool:
    """Return whether Kyverno evaluates a policy after the response; it evaluates CEL policies before it."""
    if policy.info.kind not in RULE_KINDS or policy.info.emit_warning:
        return False
    return not any(rule.info.can_deny for rule in policy.rules if rule.stage is Stage.VALIDATE)


def _name_policies(route: Route, namespace: str) -> Iterable[Place]:
    """Yield the policies that a route names for a request in a namespace."""
    names = route.names or ()
    if route.is_finegrained:
        kind = kind_of(Family.RULES, is_namespaced=bool(route.namespace)).kind
        return ((kind, route.namespace, name) for name in names)
    [kind] = route.kinds
    if kind not in _NAMESPACED:
        return ((kind, "", name) for name in names)
    return ((kind, namespace, name) for name in names) if namespace else ()
