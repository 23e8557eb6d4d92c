"""Errors about operands, and the conversion of unexpected exceptions of functions into typed errors.

Operands may be data of a request, and many people read the messages of a policy: an error describes operands by type or
length only. Where all operands are literals of the expression, the call shows them, in cel-go's words.
"""

from __future__ import annotations

from pyverno.errors import BudgetExceededError, EvaluationError, HostError, PyvernoError

__all__ = ["OperandError", "converted", "with_operands"]


class OperandError(EvaluationError):
    """An error about an operand: only `detailed` quotes it.

    >>> str(OperandError("index out of range", "index out of range: 5"))
    'index out of range'
    """

    def __init__(self, message: str, quoting: str) -> None:
        super().__init__(message, detailed=quoting)


def with_operands(error: PyvernoError) -> PyvernoError:
    """Return an error with its operands in the text: for operands that the expression itself writes out."""
    return EvaluationError(error.detailed) if isinstance(error, EvaluationError) else error


def converted(function: str, error: Exception, *, is_written: bool = False) -> PyvernoError:
    """Return the typed error of a function that failed: its own one, or one that names the function and no value.

    >>> str(converted("size", TypeError("object of type 'Secret' has no len()")))
    'size: failed with TypeError'
    """
    if isinstance(error, (EvaluationError, BudgetExceededError, HostError)):
        return with_operands(error) if is_written else error
    if isinstance(error, PyvernoError):
        refused = OperandError(f"{function}: an operand is refused", f"{function}: {error.message}")
        return with_operands(refused) if is_written else refused
    if isinstance(error, RecursionError):
        return EvaluationError("the expression or its data is nested too deeply")
    if isinstance(error, MemoryError):
        return BudgetExceededError(f"{function}: out of memory", resource="bytes")
    return EvaluationError(f"{function}: failed with {type(error).__name__}")
