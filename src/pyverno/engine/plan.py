"""What a phase does for one kind of request, worked out once: which rules are asked, and what is known beforehand.

A rule is certain when the index key alone shows that it matches; a guard that looks at nothing but the operation is
decided here. Runs of policies whose rules are certain and have pass-checks share one fused pass-check: when it says yes,
their results are ready. This module must never look at an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyverno.engine.exceptions import CompiledException
from pyverno.engine.match import IndexKey
from pyverno.engine.result import RuleResult
from pyverno.engine.rule import CompiledRule, Guard, PolicyInfo
from pyverno.kube.json import JSON
from pyverno.lang.pattern.passcheck import fuse

__all__ = ["Candidate", "Fast", "Plan", "Selected", "make_plan"]

Check = Callable[[JSON], bool]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule that may be about the request. `guards` are those that the key does not already settle.

    `is_fast` tells that the rule's pass-check alone can decide that it passes, `is_simple` that the object alone
    decides its verdict.
    """

    rule: CompiledRule
    exceptions: tuple[CompiledException, ...]
    guards: tuple[Guard, ...]
    is_certain: bool
    is_fast: bool
    is_simple: bool

    @classmethod
    def of(cls, rule: CompiledRule, exceptions: tuple[CompiledException, ...], key: IndexKey) -> Candidate:
        """Work out what the index key says about a rule."""
        guards = tuple(guard for guard in rule.guards if not guard.surely_holds(key))
        is_certain = rule.matcher.surely_matches(key)
        is_clear = is_certain and not guards and not exceptions
        return cls(
            rule,
            exceptions,
            guards,
            is_certain,
            is_fast=is_clear and rule.passes is not None,
            is_simple=is_clear and rule.judge is not None,
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """The candidates of one policy."""

    policy: PolicyInfo
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Fast:
    """Policies that one fused pass-check speaks for, and what they say when it returns True."""

    check: Check
    results: tuple[RuleResult, ...]
    policies: tuple[Selected, ...]


Plan = tuple[Fast | Selected, ...]


def make_plan(selected: Iterable[Selected]) -> Plan:
    """Put the policies that one fused pass-check can speak for first, each group in the order of names.

    Only phases without changes have such policies, so that the order in which they are asked changes nothing but the
    order of their results.
    """
    policies = tuple(selected)
    fast = tuple(policy for policy in policies if all(candidate.is_fast for candidate in _asked(policy)))
    rules = [candidate.rule for policy in fast for candidate in _asked(policy)]
    fused = fuse(rule.pattern for rule in rules if rule.pattern is not None)
    if fused is None:
        return policies
    step = Fast(fused, tuple(rule.passed for rule in rules if rule.passed is not None), fast)
    return (step, *(policy for policy in policies if policy not in fast))


def _asked(selected: Selected) -> Sequence[Candidate]:
    """Return the candidates that run when all of them pass: with applyRules One, the first."""
    return selected.candidates[:1] if selected.policy.apply_one else selected.candidates
