"""The fast tier of validations in CEL: the claim that a rule makes about the object, and the fast verdict that follows.

A claim reads nothing but `object` and the rule's variables; a rule that reads more (the request, the user, parameters,
the host) has no provable claim, and its closures decide. The fast tier never decides that a rule fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.engine.cel.session import CelCondition, CelVariable
from pyverno.engine.result import RuleResult
from pyverno.engine.rule import NO_FAST_TIER, FastTier, FastVerdict, PassCheck, PassCheckPart
from pyverno.kube.json import JSON
from pyverno.lang.cel import Program
from pyverno.lang.cel.fast.passcheck import Claim, fuse

__all__ = ["cel_fast_tier"]

_MAX_COST: Final = 100_000
"""The limit of a pass-check's cost, in units of CEL: some milliseconds."""


def cel_fast_tier(
    conditions: Sequence[CelCondition],
    variables: Sequence[CelVariable],
    validations: Sequence[Program],
    passed: tuple[RuleResult, ...],
) -> FastTier:
    """Return the fast tier of a rule that gives the results `passed` when all conditions and validations are true.

    The bound on the cost of the claim is at most the limit of one expression, so that it also holds for each
    expression, for the match conditions together and for the policy (see `engine.cel.session`). It is lower than that,
    because a pass-check never looks at the clock: what costs more is left to the closures, which do.
    """
    programs = (*(condition.program for condition in conditions), *validations)
    claim = Claim(
        tuple(program.checked for program in programs),
        tuple((variable.name, variable.program.checked) for variable in variables),
        min((_MAX_COST, *(program.settings.cost_limit for program in programs))),
    )
    if not programs or not claim.is_provable:
        return NO_FAST_TIER
    return FastTier(_fast_verdict(claim, passed), PassCheckPart(claim, fuse), passed)


def _fast_verdict(claim: Claim, passed: tuple[RuleResult, ...]) -> FastVerdict:
    """Return the rule by itself, for objects that do not pass all rules of a plan; it is generated on first use."""

    check: PassCheck | None = None
    is_made = False

    def verdict(subject: JSON) -> Sequence[RuleResult] | None:
        nonlocal check, is_made
        if not is_made:
            check, is_made = fuse((claim,)), True
        return passed if check is not None and check(subject) is True else None

    return verdict
