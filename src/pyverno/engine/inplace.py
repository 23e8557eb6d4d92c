"""The form of a MutatingPolicy in which each existing object is judged by itself, as an update that changes nothing.

This is how a policy with `mutateExisting` works on policy events and at intervals, and on a request for all objects
that it matches when it names no targets of its own.
"""

from __future__ import annotations

from pyverno.engine.actions.cel.inplace import MutatingInPlace
from pyverno.engine.actions.cel.mutate import MutatingAction
from pyverno.engine.actions.cel.targets import MutatingTargets
from pyverno.engine.cel.constraints import ConstraintMatcher
from pyverno.engine.rule import CompiledRule, Stage
from pyverno.value import replace

__all__ = ["in_place"]


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
