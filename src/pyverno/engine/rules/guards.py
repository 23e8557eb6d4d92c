"""Conditions checked between a matched rule and its action.

A guard returns a verdict to stop with, or None; an error is raised and becomes an ERROR result.
"""

from __future__ import annotations

from pyverno.engine.match import IndexKey
from pyverno.engine.result import RuleType, Status, Verdict
from pyverno.engine.rule import Run
from pyverno.engine.rules.conditions import Conditions
from pyverno.errors import EvaluationError, ExpressionError, PyvernoError
from pyverno.kube.json import JSON
from pyverno.lang.runtime import Runtime
from pyverno.value import dataclass

__all__ = ["Preconditions", "joined"]


@dataclass(frozen=True, slots=True)
class Preconditions:
    """`preconditions` of a rule: not met means SKIP."""

    conditions: Conditions

    def check(self, run: Run) -> Verdict | None:
        """Evaluate the conditions; the text of an error names them as Kyverno's does for the type of rule."""
        try:
            return self.unmet(run)
        except ExpressionError as error:
            name = "conditions" if run.rule.info.type is RuleType.GENERATION else "preconditions"
            raise EvaluationError(f"failed to evaluate {name}: {error.message}") from error

    def unmet(self, run: Run) -> Verdict | None:
        """Evaluate the conditions; errors come as they are."""
        outcome = self.conditions.check(run.scope, run.runtime, delete_request=run.is_delete)
        if outcome.met:
            return None
        return Verdict(Status.SKIP, joined("preconditions not met", outcome.message))

    def surely_holds(self, key: IndexKey) -> bool:
        """Return whether conditions that look at nothing but `request.operation` are met for this operation."""
        known = _NothingElse(request=_OperationOnly(operation=key.operation))
        try:
            return self.conditions.check(known, Runtime(), delete_request=key.operation == "DELETE").met
        except (_NotKnownError, PyvernoError):
            return False


class _NotKnownError(Exception):
    """The conditions look at more than the key knows; not an error of expressions, which `||` would replace."""


class _OperationOnly(dict[str, JSON]):
    """The variable `request` with the fields of an index key; every other field is unknown."""

    __slots__ = ()

    def __missing__(self, name: str) -> JSON:
        raise _NotKnownError(name)

    def materialise(self) -> JSON:
        raise _NotKnownError("request")


class _NothingElse(dict[str, JSON]):
    __slots__ = ()

    def __missing__(self, name: str) -> JSON:
        raise _NotKnownError(name)

    def materialise(self) -> JSON:
        raise _NotKnownError("the variables")


def joined(*texts: str) -> str:
    """Join the texts that are not empty by `; `."""
    return "; ".join(text for text in texts if text)
