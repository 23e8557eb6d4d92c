"""An immutable set of compiled policies and exceptions, indexed by what a request is about.

Selection costs the same for ten policies and for ten thousand: the rules for one (kind, subresource, operation,
namespace) are found once and remembered. `with_policy()` returns a new set; a store swaps one reference. This module
must never evaluate a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyverno.engine.exceptions import CompiledException
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import Phase
from pyverno.engine.rule import CompiledPolicy, CompiledRule

__all__ = ["PolicySet", "Selected"]

MEMO_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Selected:
    """The rules of one policy that may be about a request, with the exceptions that name them."""

    policy: CompiledPolicy
    rules: tuple[tuple[CompiledRule, tuple[CompiledException, ...]], ...]


class PolicySet:
    """Compiled policies in order of name, and the exceptions that may exempt from their rules.

    >>> len(PolicySet(()))
    0
    """

    __slots__ = ("_memo", "exceptions", "policies")

    def __init__(
        self, policies: Iterable[CompiledPolicy] = (), exceptions: Iterable[CompiledException] = ()
    ) -> None:
        self.policies = tuple(sorted(policies, key=lambda policy: (policy.info.name, policy.info.namespace)))
        self.exceptions = tuple(exceptions)
        self._memo: dict[tuple[Phase, IndexKey], tuple[Selected, ...]] = {}

    def __len__(self) -> int:
        return len(self.policies)

    def with_policy(self, policy: CompiledPolicy) -> PolicySet:
        """Return a set in which this policy replaces the one of the same kind and key."""
        others = self.without_policy(policy.info.kind, policy.info.key).policies
        return PolicySet((*others, policy), self.exceptions)

    def without_policy(self, kind: str, key: str) -> PolicySet:
        """Return a set without the policy of that kind and key."""
        kept = [policy for policy in self.policies if (policy.info.kind, policy.info.key) != (kind, key)]
        return PolicySet(kept, self.exceptions)

    def with_exceptions(self, exceptions: Iterable[CompiledException]) -> PolicySet:
        """Return a set with these exceptions instead of the present ones."""
        return PolicySet(self.policies, exceptions)

    def select(self, phase: Phase, key: IndexKey) -> tuple[Selected, ...]:
        """Return the rules of a phase that may be about a request with this key, in order of policy name."""
        found = self._memo.get((phase, key))
        if found is None:
            found = self._find(phase, key)
            if len(self._memo) >= MEMO_LIMIT:
                # a fresh dict rather than clear(): other threads may be reading the old one
                self._memo = {}
            self._memo[(phase, key)] = found
        return found

    def _find(self, phase: Phase, key: IndexKey) -> tuple[Selected, ...]:
        selected = []
        for policy in self.policies:
            if policy.info.kind not in phase.kinds:
                continue
            rules = tuple(
                (rule, self._exceptions_for(policy.info.key, rule.info.name))
                for rule in policy.rules
                if rule.stage is phase.stage and rule.may_match(key)
            )
            if rules:
                selected.append(Selected(policy, rules))
        return tuple(selected)

    def _exceptions_for(self, policy_key: str, rule: str) -> tuple[CompiledException, ...]:
        return tuple(exception for exception in self.exceptions if exception.names_rule(policy_key, rule))
