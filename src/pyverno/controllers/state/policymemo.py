"""A memo of values computed for policies, so that a change of one policy does not recompute those of all others.

Policies are compared by identity, never by content: comparing them would cost as much as the memo saves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pyverno.policy.cel.policies import CelPolicy
from pyverno.policy.clusterpolicy import ClusterPolicy

__all__ = ["PolicyKey", "PolicyMemo", "key_of"]

T = TypeVar("T")

PolicyKey = tuple[str, str, str]
"""Kind, namespace ("" for cluster-wide policies) and name."""


def key_of(policy: ClusterPolicy | CelPolicy) -> PolicyKey:
    """Return the identity of a policy."""
    return policy.kind, (policy.namespace or "") if policy.is_namespaced else "", policy.name


class PolicyMemo:
    """Values by policy and by name; `given` is any other input of a value (compared by identity)."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[PolicyKey, tuple[object, dict[str, tuple[object, object]]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, what: str, policy: ClusterPolicy | CelPolicy, compute: Callable[[], T], *, given: object = None) -> T:
        """Return a value of a policy, recomputed when the policy or `given` is another object."""
        key = key_of(policy)
        known, values = self._known.get(key, (None, {}))
        if known is not policy:
            values = {}
            self._known[key] = policy, values
        found = values.get(what)
        if found is None or found[0] is not given:
            values[what] = found = given, compute()
        value: T = found[1]  # type: ignore[assignment]  # what was put there under this name
        return value

    def keep(self, policies: Iterable[ClusterPolicy | CelPolicy]) -> None:
        """Forget all policies but these."""
        present = {key_of(policy) for policy in policies}
        self._known = {key: value for key, value in self._known.items() if key in present}
