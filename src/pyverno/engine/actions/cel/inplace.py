"""Mutation in CEL of existing objects that no request triggered: each object is judged as an update of itself.

This is how a MutatingPolicy with `mutateExisting` works on policy events and at intervals, and on a request for all
objects that it matches when it names no targets of its own. This module must never look for objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.engine.actions.cel.mutate import MutatingAction, mutating_bindings
from pyverno.engine.actions.cel.targets import MutatingTargets
from pyverno.engine.actions.cel.validate import SKIPPED
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.cel.session import CelCondition, CelSession, first_unmet
from pyverno.engine.effects import PatchEffect
from pyverno.engine.result import ResourceRef, Verdict
from pyverno.engine.rule import CompiledRule, Exemption, Run, Stage
from pyverno.value import dataclass, replace

__all__ = ["MutatingInPlace", "in_place"]


@dataclass(frozen=True, slots=True)
class MutatingInPlace:
    """Changes the object of the request as an existing one: the change is an effect.

    `triggers` are match conditions about the requests that trigger a policy with targets of its own. Nobody triggered
    it here: a target for which one of them is false, or cannot be evaluated, is left as it is.
    """

    action: MutatingAction
    triggers: tuple[CelCondition, ...] = ()

    def run(self, run: Run) -> Sequence[Verdict]:
        """Return the verdict on the object, with the change as an effect."""
        if self.triggers:
            session = CelSession(run, mutating_bindings(run.request), self.action.variables)
            if first_unmet(session.for_conditions(), self.triggers) is not None:
                return SKIPPED
        return tuple(_as_effects(self.action.run(run), run))

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Skip the policy, or mutate with what an exception allows."""
        verdicts = self.action.exempt(run, exemptions)
        return None if verdicts is None else tuple(_as_effects(verdicts, run))


def in_place(rule: CompiledRule) -> CompiledRule | None:
    """Return the rule of a MutatingPolicy in the form that judges each existing object by itself.

    None for a rule whose targets an expression returns: that needs a request.
    """
    match rule.action:
        case MutatingTargets(targets=targets) as existing:
            if targets.expression is not None:
                return None
            matcher, triggers, conditions = targets.matcher, existing.conditions, targets.conditions
            action = MutatingAction(
                existing.mutations, conditions, existing.variables, existing.refuses_atomics, existing.annotations
            )
        case MutatingAction() as action:
            if not isinstance(rule.matcher, ConstraintMatcher):
                return None
            matcher, triggers = rule.matcher.for_any_operation(), ()
            action = replace(action, conditions=(*action.conditions, *action.target_conditions))
        case _:  # what does not compile: its error is the verdict on every object
            return replace(rule, stage=Stage.MUTATE_EXISTING)
    return replace(rule, stage=Stage.MUTATE_EXISTING, matcher=matcher, action=MutatingInPlace(action, triggers))


def _as_effects(verdicts: Sequence[Verdict], run: Run) -> Iterator[Verdict]:
    before = run.request.object
    target = ResourceRef.of(before)
    for verdict in verdicts:
        effects: tuple[PatchEffect, ...] = ()
        if verdict.patched is not None and isinstance(before, dict):
            effects = (PatchEffect(target, before, verdict.patched, run.request.subresource),)
        yield verdict._replace(effects=effects, target=target)
