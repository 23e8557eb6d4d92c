"""The table of rules and the policies that replace them, by which exceptions, suites and reports are rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyverno.compiler.autogen.patterns import expand
from pyverno.compiler.migration.policy import PolicyConversion
from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.scope import convert_scope
from pyverno.kube.wildcard import match as wildcard_match
from pyverno.policy.clusterpolicy import ClusterPolicy
from pyverno.value import dataclass

__all__ = ["Successor", "Successors", "successors_of"]


@dataclass(frozen=True, slots=True)
class Successor:
    """A policy that takes the place of a rule, or of a copy of it for controllers, for objects of some kinds.

    `policy` is `namespace/name` for a namespaced policy, as exceptions and suites write it.
    """

    policy: str
    rule: str
    name: str
    kind: str
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Successors:
    """The successors of all rules that were converted, and the rules that stay as they are, as (policy, rule)."""

    entries: tuple[Successor, ...] = ()
    kept: frozenset[tuple[str, str]] = frozenset()

    def of_policy(self, policy: str) -> tuple[Successor, ...]:
        """Return the successors of a policy's rules."""
        return tuple(each for each in self.entries if each.policy == policy)

    def find(self, policy: str, rule: str) -> tuple[Successor, ...]:
        """Return the successors of the rules of a name, of all rules without one; wildcards are allowed.

        >>> found = Successor("p", "autogen-a", "p", "ValidatingPolicy", frozenset({"Deployment"}))
        >>> Successors((found,)).find("p", "autogen-*") == (found,), Successors((found,)).find("p", "a")
        (True, ())
        """
        return tuple(each for each in self.of_policy(policy) if not rule or wildcard_match(rule, each.rule))

    def keeps(self, policy: str, rules: Iterable[str]) -> Sequence[str]:
        """Return the rules of a policy that stay as they are and have one of these names."""
        names = tuple(rules)
        found = sorted(rule for key, rule in self.kept if key == policy)
        return [rule for rule in found if any(wildcard_match(name, rule) for name in names)]

    def joined(self, other: Successors) -> Successors:
        """Return the successors of two sets of policies."""
        return Successors((*self.entries, *other.entries), self.kept | other.kept)


def successors_of(policy: ClusterPolicy, conversion: PolicyConversion, book: SchemaBook) -> Successors:
    """Return what takes the place of the rules of a policy and of their copies for pod controllers."""
    kinds = {each["metadata"]["name"]: str(each["kind"]) for each in conversion.documents}
    outcomes = {each.rule: each for each in conversion.rules}
    entries, kept = [], set()
    for rule in expand(policy):
        origin = next((each for each in policy.spec.rules if each.path == rule.path), rule)
        outcome = outcomes[origin.name]
        if outcome.refused is not None:
            kept.add((policy.key, rule.name))
            continue
        scope = convert_scope(rule.match, rule.exclude, book.schemas.kinds)
        matched = frozenset(target.kind for target in scope.targets)
        entries += [Successor(policy.key, rule.name, name, kinds[name], matched) for name in outcome.policies]
    return Successors(tuple(entries), frozenset(kept))
