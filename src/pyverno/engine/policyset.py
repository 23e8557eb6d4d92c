"""An immutable set of compiled policies and exceptions, indexed by kind, operation and namespace of requests.

Selection costs the same for ten policies and for ten thousand: the plan for one (phases, kind, subresource, operation,
namespace) is made once and remembered. `with_policy()` returns a new set; a store swaps one reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pyverno.engine.fast.plan import Candidate, Checks, Plan, Selected, make_plan
from pyverno.engine.match import IndexKey
from pyverno.engine.phases import Phase
from pyverno.engine.request import Operation
from pyverno.engine.rule import CompiledPolicy, CompiledRule, Exemption, RuleInfo
from pyverno.engine.timeslice import CompileSlice

__all__ = ["PolicySet"]

MEMO_LIMIT = 4096
_SHOWN = 5
"""Policies that the text of a set names."""


class PolicySet:
    """Compiled policies in order of name, and the exceptions that may exempt from their rules.

    >>> len(PolicySet(()))
    0
    """

    __slots__ = (
        "_checks",
        "_exceptions_of",
        "_memo",
        "_named",
        "_remake",
        "asks_all",
        "exceptions",
        "policies",
        "recorded",
    )

    def __init__(
        self,
        policies: Iterable[CompiledPolicy] = (),
        exceptions: Iterable[Exemption] = (),
        *,
        asks_all: bool = False,
        remake: Callable[[], PolicySet] | None = None,
    ) -> None:
        """Take policies and exceptions; `asks_all` includes policies that are for background scans only.

        `remake` compiles the same set again, in another process: compiled rules are functions and cannot be pickled.
        """
        self._remake = remake
        self.asks_all = asks_all
        self.policies = tuple(sorted(policies, key=lambda policy: (policy.info.name, policy.info.namespace)))
        self.exceptions = tuple(exceptions)
        self._exceptions_of: Mapping[str, Sequence[tuple[int, Exemption]]] | None = None
        self._memo: dict[tuple[tuple[Phase, ...], IndexKey], Plan] = {}
        self._checks: Checks = {}
        self._named: dict[tuple[str, str, str], CompiledRule] | None = None
        self.recorded: list[object] = []
        """The copies that explanations evaluate, while none does: at most one entry, of `explain.recording`."""

    def __len__(self) -> int:
        return len(self.policies)

    def __iter__(self) -> Iterator[CompiledPolicy]:
        return iter(self.policies)

    def __repr__(self) -> str:
        names = [policy.info.key for policy in self.policies[:_SHOWN]]
        more = [f"and {len(self.policies) - _SHOWN} more"] if len(self.policies) > _SHOWN else []
        exceptions = f"; exceptions: {len(self.exceptions)}" if self.exceptions else ""
        return f"<PolicySet of {len(self.policies)}: {', '.join((*names, *more))}{exceptions}>"

    def __reduce__(self) -> tuple[Callable[[], PolicySet], tuple[()]]:
        if self._remake is None:
            raise TypeError("only a PolicySet as it was loaded can be pickled, because it is compiled again")
        return self._remake, ()

    def with_policy(self, policy: CompiledPolicy) -> PolicySet:
        """Return a set in which this policy replaces the one of the same kind and key."""
        others = self.without_policy(policy.info.kind, policy.info.key).policies
        return PolicySet((*others, policy), self.exceptions, asks_all=self.asks_all)

    def without_policy(self, kind: str, key: str) -> PolicySet:
        """Return a set without the policy of that kind and key."""
        kept = [policy for policy in self.policies if (policy.info.kind, policy.info.key) != (kind, key)]
        return PolicySet(kept, self.exceptions, asks_all=self.asks_all)

    def with_exceptions(self, exceptions: Iterable[Exemption]) -> PolicySet:
        """Return a set with these exceptions instead of the present ones."""
        return PolicySet(self.policies, exceptions, asks_all=self.asks_all)

    def exceptions_for(self, rule: RuleInfo) -> tuple[Exemption, ...]:
        """Return the exceptions that refer to a rule, in their order."""
        if not self.exceptions:
            return ()
        if self._exceptions_of is None:
            self._exceptions_of = _by_policy(self.exceptions)
        names = {rule.policy.key, rule.policy.name}
        found = {at: each for name in names for at, each in self._exceptions_of.get(name, ())}
        return tuple(found[at] for at in sorted(found) if found[at].names_rule(rule))

    def find_rule(self, info: RuleInfo) -> CompiledRule | None:
        """Return the first rule with the kind, key and name of another one, which may come from another process."""
        if self._named is None:
            named: dict[tuple[str, str, str], CompiledRule] = {}
            for policy in self.policies:
                for rule in policy.rules:
                    named.setdefault((policy.info.kind, policy.info.key, rule.info.name), rule)
            self._named = named
        return self._named.get((info.policy.kind, info.policy.key, info.name))

    def plan(self, phases: Sequence[Phase], key: IndexKey, deadline: float | None = None) -> Plan:
        """Return what phases do for requests with this key, one after the other, each in order of policy name.

        With a deadline fast tiers are compiled for a moment only: a plan without some of them gives equal results, and
        is not remembered, so that the next requests compile the rest.
        """
        asked = (tuple(phases), key)
        found = self._memo.get(asked)
        if found is None:
            time = CompileSlice() if deadline is not None else CompileSlice(float("inf"))
            selected = tuple(tuple(self._select(phase, key, time)) for phase in phases)
            found = tuple(step for policies in selected for step in make_plan(policies, self._checks, time))
            if time.is_over:
                return found
            if any(each.problem is not None for policies in selected for one in policies for each in one.candidates):
                return found  # the error may be temporary: the next request tries again
            if len(self._memo) >= MEMO_LIMIT:
                # a fresh dict rather than clear(): other threads may be reading the old one
                self._memo, self._checks = {}, {}
            if key.is_short:
                self._memo[asked] = found
        return found

    def _select(self, phase: Phase, key: IndexKey, time: CompileSlice) -> Iterable[Selected]:
        if key.operation == Operation.DELETE and not phase.takes_deletes:
            return
        for policy in self.policies:
            info = policy.info
            is_asked = info.background if key.background else info.admission or self.asks_all
            if info.family is not phase.family or not is_asked:
                continue
            rules = (rule for rule in policy.rules if rule.stage is phase.stage)
            found = (self._candidate(rule, key, time) for rule in rules)
            candidates = tuple(candidate for candidate in found if candidate is not None)
            if candidates:
                yield Selected(info, candidates)

    def _candidate(self, rule: CompiledRule, key: IndexKey, time: CompileSlice) -> Candidate | None:
        """Return a rule with its exceptions, None when it matches no such request."""
        try:
            if not rule.may_match(key):
                return None
            return Candidate.of(rule, self.exceptions_for(rule.info), key, time)
        except Exception as error:
            return Candidate.broken(rule, error)


def _by_policy(exceptions: Sequence[Exemption]) -> Mapping[str, Sequence[tuple[int, Exemption]]]:
    """Return the exceptions with their positions by the names of the policies that they refer to."""
    found: dict[str, list[tuple[int, Exemption]]] = {}
    for at, each in enumerate(exceptions):
        for name in each.policy_names:
            found.setdefault(name, []).append((at, each))
    return found
