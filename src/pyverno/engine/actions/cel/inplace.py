"""Mutation in CEL of an existing object as an update of itself; which objects these are is not decided here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyverno.engine.actions.cel.mutate import MutatingAction, mutating_bindings
from pyverno.engine.actions.cel.validate import SKIPPED
from pyverno.engine.cel.session import CelCondition, CelSession, first_unmet
from pyverno.engine.effects import PatchEffect
from pyverno.engine.result import ResourceRef, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.value import dataclass

__all__ = ["MutatingInPlace"]


@dataclass(frozen=True, slots=True)
class MutatingInPlace:
    """Changes the object of the request as an existing one: the change is an effect.

    `triggers` are match conditions on the requests that trigger a policy with its own targets. Here there is no such
    request: a target for which a condition is false, or cannot be evaluated, is not changed.
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


def _as_effects(verdicts: Sequence[Verdict], run: Run) -> Iterator[Verdict]:
    before = run.request.object
    target = ResourceRef.of(before)
    for verdict in verdicts:
        effects: tuple[PatchEffect, ...] = ()
        if verdict.patched is not None and isinstance(before, dict):
            effects = (PatchEffect(target, before, verdict.patched, run.request.subresource),)
        yield verdict._replace(effects=effects, target=target)
