"""JSON texts that come out of values: read within a budget, with errors that do not show the text.

This module must never know where the text stands.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import DocumentError, EvaluationError
from pyverno.kube.json import JSON, decode
from pyverno.lang.runtime import Budget

__all__ = ["read_json"]

_LARGE: Final = 65_536
"""Longest text that is read by the slow and exact decoder, in characters."""

_LONG_NUMBER: Final = "0" * 19
_DIGITS_TO_ZERO: Final = str.maketrans("123456789", "000000000")
_WEIGHT: Final = 8
"""A value in memory takes about so many times the bytes of its text."""


def read_json(text: str, budget: Budget, problem: str) -> JSON:
    """Return the value of a JSON text; raises EvaluationError with `problem`, which must not show the text.

    A large text that only the exact decoder reads (numbers of 19 digits and more, lone surrogates) is refused.
    """
    budget.charge_bytes(len(text), per_step=8)
    budget.produce(len(text), weight=_WEIGHT)
    if len(text) <= _LARGE:
        try:
            return decode(text)
        except DocumentError as error:
            raise EvaluationError(problem, detailed=error.message) from None
    if _LONG_NUMBER in text.translate(_DIGITS_TO_ZERO):
        raise EvaluationError(f"{problem} that can be read at this size")
    import orjson  # only large texts that a policy reads as JSON come here

    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        raise EvaluationError(problem) from None
