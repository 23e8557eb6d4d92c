"""JSON texts that come out of values: read within a budget, with errors that do not show the text."""

from __future__ import annotations

from typing import Final

from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON, decode
from pyverno.lang.runtime import Budget

__all__ = ["read_json"]

_WEIGHT: Final = 8
"""Size of a value in memory, as a multiple of the bytes of its text."""


def read_json(text: str, budget: Budget, problem: str) -> JSON:
    """Return the value of a JSON text; raises EvaluationError with `problem`, which must not show the text."""
    budget.charge_bytes(len(text), per_step=8)
    budget.produce(len(text), weight=_WEIGHT)
    try:
        return decode(text)
    except DocumentError as error:
        raise EvaluationError(problem, detailed=error.message) from None
