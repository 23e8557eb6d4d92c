"""What was worked out for policies before, as long as they are the same objects: webhooks follow every change of one.

This module must never tell two policies apart by what they say: that would cost what is to be saved.
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
    """Return what tells a policy from all others."""
    return policy.kind, (policy.namespace or "") if policy.is_namespaced else "", policy.name


class PolicyMemo:
    """Values by policy and by what they are; `given` is whatever else a value follows from (compared by identity)."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._known: dict[PolicyKey, tuple[object, dict[str, tuple[object, object]]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, what: str, policy: ClusterPolicy | CelPolicy, compute: Callable[[], T], *, given: object = None) -> T:
        """Return a value of a policy, computed anew when the policy or what was given is another object."""
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
