"""Cleanup: objects that should be gone when their conditions hold."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.effects import DeleteEffect
from pyverno.engine.result import ResourceRef, Status, Verdict
from pyverno.engine.rule import Run
from pyverno.engine.rules.conditions import Conditions
from pyverno.errors import ExpressionError
from pyverno.value import dataclass

__all__ = ["DeleteRule"]


@dataclass(frozen=True, slots=True)
class DeleteRule(SkippedByException):
    """Wants an object deleted when the conditions hold (no conditions always hold)."""

    conditions: Conditions | None = None
    propagation_policy: str = ""

    def run(self, run: Run) -> Sequence[Verdict]:
        """Judge one object; it is the variable `target`."""
        document = run.resource
        if document is None:
            return ()
        scope = run.scope.with_values(target=document)
        if self.conditions is not None:
            try:
                if not self.conditions.hold(scope, run.runtime):
                    return (Verdict(Status.FAIL, "resource did not match"),)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, error.message),)
        effect = DeleteEffect(ResourceRef.of(document), self.propagation_policy)
        return (Verdict(Status.PASS, "resource matched", effects=(effect,)),)
