"""`validate.deny`: conditions under which the object is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyverno.engine.actions.exemption import SkippedByException
from pyverno.engine.actions.message import rendered_message
from pyverno.engine.actions.pattern import passed_message
from pyverno.engine.conditions import Conditions
from pyverno.engine.guards import joined
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Run
from pyverno.errors import ExpressionError
from pyverno.lang.template import Template

__all__ = ["DenyCheck"]


@dataclass(frozen=True, slots=True)
class DenyCheck(SkippedByException):
    """Denies when its conditions hold; without conditions it always denies."""

    rule: str
    message: Template
    conditions: Conditions | None = None

    def run(self, run: Run) -> Sequence[Verdict]:
        """Evaluate the conditions; unlike patterns they also judge a DELETE."""
        reasons = ""
        if self.conditions is not None:
            try:
                outcome = self.conditions.check(run.scope, run.runtime, delete_request=run.is_delete)
            except ExpressionError as error:
                return (Verdict(Status.ERROR, f"failed to check deny conditions: {error.message}"),)
            if not outcome.met:
                return (Verdict(Status.PASS, passed_message(self.rule)),)
            reasons = outcome.message
        return (Verdict(Status.FAIL, self._text(run, reasons)),)

    def _text(self, run: Run, reasons: str) -> str:
        try:
            message = rendered_message(self.message, run)
        except ExpressionError:
            # Kyverno: an unresolved message leaves the texts of the conditions
            return reasons or f"validation error: rule {self.rule} failed"
        if not isinstance(message, str):
            return "the produced message didn't resolve to a string, check your policy definition."
        return joined(message, reasons) or f"validation error: rule {self.rule} failed"
