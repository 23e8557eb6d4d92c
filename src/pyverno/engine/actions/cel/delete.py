"""Deletion in CEL: objects that a DeletingPolicy wants gone."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.actions.cel.validate import no_exceptions
from pyverno.engine.cel.session import CelCondition, CelSession, CelVariable, first_unmet, request_bindings
from pyverno.engine.effects import DeleteEffect
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Exemption, Run
from pyverno.value import dataclass

__all__ = ["DeletingAction"]


@dataclass(frozen=True, slots=True)
class DeletingAction:
    """Wants an object deleted when all conditions are true; one that is false decides, otherwise errors count."""

    conditions: tuple[CelCondition, ...]
    variables: tuple[CelVariable, ...] = ()
    propagation_policy: str = ""

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge one object."""
        bindings = request_bindings(run.request)
        seen = {"object": bindings["object"], "namespaceObject": bindings["namespaceObject"]}
        session = CelSession(run, {**seen, "exceptions": no_exceptions()}, self.variables)
        what = "json" if run.request.is_payload else "resource"
        unmet = first_unmet(session, self.conditions)
        if unmet is not None:
            if unmet.errors:
                return (Verdict(Status.ERROR, "; ".join(unmet.errors)),)
            return (Verdict(Status.FAIL, f"{what} did not match"),)
        effect = DeleteEffect(ResourceRef.of(run.resource), self.propagation_policy)
        return (Verdict(Status.PASS, f"{what} matched", effects=(effect,)),)

    def exempt(self, run: Run, exemptions: Sequence[Exemption]) -> Sequence[Verdict] | None:
        """Keep the object: any exception that applies exempts it."""
        keys = tuple(exemption.key for exemption in exemptions)
        return (Verdict(Status.FAIL, "resource did not match", exceptions=keys),)
