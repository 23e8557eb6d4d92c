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
    """A rule that may be about the request. `guards` are those that the key does not already settle."""

    rule: CompiledRule
    exceptions: tuple[CompiledException, ...]
    guards: tuple[Guard, ...]
    is_certain: bool

    @classmethod
    def of(cls, rule: CompiledRule, exceptions: tuple[CompiledException, ...], key: IndexKey) -> Candidate:
        """Work out what the index key says about a rule."""
        guards = tuple(guard for guard in rule.guards if not guard.surely_holds(key))
        return cls(rule, exceptions, guards, rule.matcher.surely_matches(key))

    @property
    def is_fast(self) -> bool:
        """Tell whether the rule's pass-check alone can decide that it passes."""
        rule = self.rule
        return (
            self.is_certain
            and not self.guards
            and not self.exceptions
            and rule.passes is not None
            and rule.passed is not None
        )


@dataclass(frozen=True, slots=True)
class Selected:
    """The candidates of one policy."""

    policy: PolicyInfo
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Fast:
    """Policies that pass-checks speak for.

    `fused` speaks for the policies with the numbers `fused_for`, each check of `own` for one policy; `results` are what
    a policy says when its check returns True, `all_results` what all of them say together.
    """

    policies: tuple[Selected, ...]
    results: tuple[tuple[RuleResult, ...], ...]
    all_results: tuple[RuleResult, ...]
    fused: Check | None
    fused_for: tuple[int, ...]
    own: tuple[tuple[int, Check], ...]


Plan = tuple[Fast | Selected, ...]


def make_plan(selected: Iterable[Selected]) -> Plan:
    """Join neighbouring policies that are fast, keeping the order of all."""
    steps: list[Fast | Selected] = []
    run: list[Selected] = []
    for policy in selected:
        if all(candidate.is_fast for candidate in _asked(policy)):
            run.append(policy)
            continue
        steps.extend(_joined(run))
        run = []
        steps.append(policy)
    steps.extend(_joined(run))
    return tuple(steps)


def _asked(selected: Selected) -> Sequence[Candidate]:
    """Return the candidates that run when all of them pass: with applyRules One, the first."""
    return selected.candidates[:1] if selected.policy.apply_one else selected.candidates


def _joined(run: list[Selected]) -> Sequence[Fast | Selected]:
    if not run:
        return ()
    rules = [[candidate.rule for candidate in _asked(policy)] for policy in run]
    plain = tuple(number for number, own in enumerate(rules) if all(rule.patterns for rule in own))
    fused = fuse(pattern for number in plain for rule in rules[number] for pattern in rule.patterns)
    if fused is None:
        plain = ()
    own_checks = tuple(
        (number, _each([rule.passes for rule in own if rule.passes is not None]))
        for number, own in enumerate(rules)
        if number not in plain
    )
    results = tuple(tuple(rule.passed for rule in own if rule.passed is not None) for own in rules)
    together = tuple(result for own in results for result in own)
    return (Fast(tuple(run), results, together, fused, plain, own_checks),)


def _each(checks: Sequence[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    return lambda subject: all(check(subject) is True for check in checks)
