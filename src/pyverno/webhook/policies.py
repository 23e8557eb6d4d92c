"""The policies as the webhook asks them: one immutable set, and its part for every route.

A store makes a new `Policies` when something changes and swaps one reference; a request keeps the one that it started
with. This module must never watch anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.engine.policyset import PolicySet
from pyverno.webhook.routes import Route

__all__ = ["Policies"]

_MEMO_LIMIT = 1024


class Policies:
    """All compiled policies and exceptions; `own_paths` are (kind, key) of those that have a path of their own.

    >>> from pyverno.webhook.routes import read_route
    >>> len(Policies().on(read_route("/validate/fail")))
    0
    """

    __slots__ = ("_memo", "all", "own_paths")

    def __init__(self, policies: PolicySet | None = None, own_paths: Iterable[tuple[str, str]] = ()) -> None:
        """Take the set of all policies, invalid ones included: their rules yield errors."""
        self.all = policies if policies is not None else PolicySet()
        self.own_paths = frozenset(own_paths)
        self._memo: dict[Route, PolicySet] = {}

    def on(self, route: Route) -> PolicySet:
        """Return the policies that are asked on a route; the shared paths leave out those that have their own."""
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
            if len(self._memo) >= _MEMO_LIMIT:  # paths are a caller's text: they must not fill the memory
                self._memo = {}
            self._memo[route] = found
        return found

    def missing(self, route: Route) -> tuple[str, ...]:
        """Return the names on a route that no policy has."""
        known = {policy.info.name for policy in self.on(route).policies}
        return tuple(name for name in route.names or () if name not in known)
