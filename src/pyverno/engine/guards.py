"""Conditions that stand between a matched rule and its action.

A guard returns a verdict to stop with, or None; an error is raised and becomes an ERROR result. This module must never
decide what a rule does.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyverno.engine.conditions import Conditions
from pyverno.engine.result import Status, Verdict
from pyverno.engine.rule import Run
from pyverno.errors import EvaluationError, ExpressionError

__all__ = ["Preconditions", "joined"]


@dataclass(frozen=True, slots=True)
class Preconditions:
    """`preconditions` of a rule: not met means SKIP."""

    conditions: Conditions

    def check(self, run: Run) -> Verdict | None:
        """Evaluate the conditions."""
        try:
            outcome = self.conditions.check(run.scope, run.runtime, delete_request=run.is_delete)
        except ExpressionError as error:
            raise EvaluationError(f"failed to evaluate preconditions: {error.message}") from error
        if outcome.met:
            return None
        return Verdict(Status.SKIP, joined("preconditions not met", outcome.message))


def joined(*texts: str) -> str:
    """Join the texts that are not empty by `; `."""
    return "; ".join(text for text in texts if text)
