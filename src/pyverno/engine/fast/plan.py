"""The plan of a phase for one kind of request, made once: the rules to run, and what is known before the object.

A rule is certain when the index key alone shows that it matches; a guard that looks at nothing but the operation is
decided here. Policies whose rules are certain and have pass-checks share one fused pass-check: when it returns True,
their results are ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from pyverno.engine.match import IndexKey
from pyverno.engine.result import RuleResult, Status
from pyverno.engine.rule import (
    NO_FAST_TIER,
    CompiledRule,
    Exemption,
    FastTier,
    FastVerdict,
    Guard,
    PassCheck,
    PassCheckPart,
    PolicyInfo,
)
from pyverno.engine.timeslice import CompileSlice
from pyverno.kube.json import JSON
from pyverno.value import dataclass, replace

__all__ = ["Candidate", "Checks", "Fast", "Plan", "RuleSequence", "Selected", "make_plan"]

GROUP = 32
"""How many policies share a pass-check: more would save little, and one failing rule sends all to fast verdicts."""

LEAST_APART = 3
"""From how many policies on those with alternatives or denials share a pass-check: a fast verdict costs little more."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule that may match the request. `guards` are those that the key does not already decide.

    `fast_tier` is the fast tier of the rule, empty unless the key shows that only its action decides.
    `problem` is an error from making the candidate: the rule ends with it when it matches the request.
    """

    rule: CompiledRule
    exceptions: tuple[Exemption, ...]
    guards: tuple[Guard, ...]
    is_certain: bool
    fast_tier: FastTier
    problem: Exception | None = None

    @classmethod
    def of(cls, rule: CompiledRule, exceptions: tuple[Exemption, ...], key: IndexKey, time: CompileSlice) -> Candidate:
        """Decide a rule by the index key as far as possible; the rest is left to the request."""
        try:
            return cls._of(rule, exceptions, key, time)
        except Exception as error:
            return cls.broken(rule, error)

    @classmethod
    def broken(cls, rule: CompiledRule, error: Exception) -> Candidate:
        """Return a rule that ends with an error for every request that it matches."""
        return cls(rule, (), rule.guards, is_certain=False, fast_tier=NO_FAST_TIER, problem=error)

    @classmethod
    def _of(cls, rule: CompiledRule, exceptions: tuple[Exemption, ...], key: IndexKey, time: CompileSlice) -> Candidate:
        guards = tuple(guard for guard in rule.guards if not guard.surely_holds(key))
        is_certain = rule.matcher.surely_matches(key)
        is_clear = is_certain and not guards and not exceptions
        fast_tier = time.make(rule.fast_tier) if is_clear and rule.fast_tier is not None else None
        fast_tier = fast_tier or NO_FAST_TIER
        if rule.checks_existing and key.operation == "UPDATE" and fast_tier.verdict is not None:
            # a failing update may be excused by what the object was before
            fast_tier = replace(fast_tier, verdict=_unless_failed(fast_tier.verdict))
        return cls(rule, exceptions, guards, is_certain, fast_tier)


def _unless_failed(verdict: FastVerdict) -> FastVerdict:
    def verdict_unless_failed(subject: JSON) -> Sequence[RuleResult] | None:
        results = verdict(subject)
        return None if any(result.status is Status.FAIL for result in results or ()) else results

    return verdict_unless_failed


@dataclass(frozen=True, slots=True)
class Selected:
    """The candidates of one policy."""

    policy: PolicyInfo
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class RuleSequence:
    """Rules that run one after the other, of one policy or of several, each with its fast verdict if any.

    With `stops` the rules are those of one policy, and the first that passes or fails is the last.
    """

    rules: tuple[tuple[FastVerdict | None, Candidate], ...]
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Fast:
    """Policies that share a fused pass-check: their results when it returns True, and the steps to run otherwise.

    Any other result and any exception proves nothing.
    """

    check: PassCheck
    results: tuple[RuleResult, ...]
    otherwise: tuple[RuleSequence, ...]


Plan = tuple[Fast | RuleSequence, ...]


Checks = dict[tuple[PassCheckPart, ...], PassCheck | None]
"""Fused pass-checks by their parts: plans of many namespaces share them."""


def make_plan(selected: Iterable[Selected], checks: Checks, time: CompileSlice) -> Plan:
    """Put the policies that a fused pass-check can decide first, each group in the order of names.

    Only phases without changes have such policies, so that the order in which they run changes nothing but the order
    of their results. When `time` has run out, rules run one after the other.
    """
    policies = tuple(selected)
    fast = [
        policy for policy in policies if all(candidate.fast_tier.pass_check for candidate in _first_candidates(policy))
    ]
    apart = [policy for policy in fast if _is_apart(policy)]
    fused = [policy for policy in fast if not _is_apart(policy)]
    together: list[Fast | RuleSequence] = []
    for group in (fused, apart if len(apart) >= LEAST_APART else []):
        for first in range(0, len(group), GROUP):
            together.extend(_build_plan(tuple(group[first : first + GROUP]), checks, time))
    known = {id(policy) for policy in (fast if len(apart) >= LEAST_APART else fused)}
    return (*together, *_sequences(policy for policy in policies if id(policy) not in known))


def _is_apart(selected: Selected) -> bool:
    return any(candidate.fast_tier.is_apart for candidate in _first_candidates(selected))


def _sequences(policies: Iterable[Selected]) -> Iterator[RuleSequence]:
    """Yield the sequences of rules of policies: as few as possible, because a step costs as much as a simple rule."""
    several: list[tuple[FastVerdict | None, Candidate]] = []
    for policy in policies:
        rules = [(candidate.fast_tier.verdict, candidate) for candidate in policy.candidates]
        if not policy.policy.apply_one or len(rules) == 1:
            several += rules
            continue
        if several:
            yield RuleSequence(tuple(several))
            several = []
        yield RuleSequence(tuple(rules), stops=True)
    if several:
        yield RuleSequence(tuple(several))


def _build_plan(policies: tuple[Selected, ...], checks: Checks, time: CompileSlice) -> Plan:
    """Return policies as one step, or as sequences of rules when they have no pass-check."""
    tiers = [candidate.fast_tier for policy in policies for candidate in _first_candidates(policy)]
    otherwise = tuple(_sequences(policies))
    parts = tuple(tier.pass_check for tier in tiers if tier.pass_check is not None)
    if parts not in checks:
        made = time.make(lambda: (_pass_check(parts),))
        if made is None:
            return otherwise
        [checks[parts]] = made
    check = checks[parts]
    if check is None:
        return otherwise
    results = tuple(result for tier in tiers for result in tier.passed)
    return (Fast(check, results, otherwise),)


def _pass_check(parts: Sequence[PassCheckPart]) -> PassCheck | None:
    """Make one pass-check of parts, those of each language fused; None when one of them cannot be made."""
    try:
        return _fuse(parts)
    except Exception:  # the closures decide what cannot be proven
        return None


def _fuse(parts: Sequence[PassCheckPart]) -> PassCheck | None:
    languages = {part.fuse: [each.condition for each in parts if each.fuse is part.fuse] for part in parts}
    checks = [check for check in (fuse(conditions) for fuse, conditions in languages.items()) if check is not None]
    if len(checks) < len(languages):
        return None
    return reduce(_both, checks)


def _both(first: PassCheck, second: PassCheck) -> PassCheck:
    return lambda subject: first(subject) is True and second(subject) is True


def _first_candidates(selected: Selected) -> Sequence[Candidate]:
    """Return the candidates that run when all of them pass: with applyRules One, the first."""
    return selected.candidates[:1] if selected.policy.apply_one else selected.candidates
