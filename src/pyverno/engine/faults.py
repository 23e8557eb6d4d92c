"""Faults: failures that no rule, policy or object should be able to cause, and how they are reported.

A fault ends one rule with an ERROR that failurePolicy judges; its text names no value. What operators need to find the
bug, the type of the exception and the functions and lines that it came through, travels beside the text as `Fault`.
This module must never look at the text of an exception.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, NamedTuple

from pyverno.engine.result import Fault, ResourceRef, Status, Verdict
from pyverno.engine.scope import VariableFaultError
from pyverno.errors import PyvernoError

__all__ = ["error_verdict", "fault_of", "trace_of"]

_DEEPEST: Final = 24


class _Kind(NamedTuple):
    """One kind of fault: the exceptions, its stable code, and the words for users."""

    errors: tuple[type[BaseException], ...]
    code: str
    words: str


_KINDS: Final = (
    _Kind((RecursionError,), "fault-depth", "the object or the policy is nested too deeply"),
    _Kind((MemoryError,), "fault-memory", "there is not enough memory"),
    _Kind((ArithmeticError,), "fault-arithmetic", "a calculation failed"),
    _Kind((LookupError, AttributeError), "fault-missing", "a part of a value is missing"),
    _Kind((TypeError,), "fault-type", "a value has an unexpected type"),
    _Kind((ValueError,), "fault-value", "a value has an unexpected form"),
    _Kind((OSError,), "fault-system", "the operating system reported a failure"),
)
_UNKNOWN: Final = _Kind((), "fault-unknown", "an unexpected failure")
_WORDS: Final = {kind.code: kind.words for kind in (*_KINDS, _UNKNOWN)}


def fault_of(error: BaseException) -> Fault:
    """Return the publishable facts of an unexpected exception.

    >>> fault_of(KeyError("password"))
    Fault(code='fault-missing', error='KeyError', trace=())
    """
    if isinstance(error, VariableFaultError) and error.__cause__ is not None:
        error = error.__cause__
    kind = next((each for each in _KINDS if isinstance(error, each.errors)), _UNKNOWN)
    return Fault(kind.code, type(error).__name__, trace_of(error.__traceback__))


def trace_of(traceback: TracebackType | None) -> tuple[str, ...]:
    """Return the functions and lines of a traceback, outermost first; of a deep one only the innermost.

    >>> trace_of(None)
    ()
    """
    frames: list[tuple[TracebackType, int]] = []
    while traceback is not None:
        frames.append((traceback, traceback.tb_lineno))
        if len(frames) > _DEEPEST:
            del frames[0]
        traceback = traceback.tb_next
    return tuple(
        f"{frame.tb_frame.f_globals.get('__name__', '?')}.{frame.tb_frame.f_code.co_qualname}:{line}"
        for frame, line in frames
    )


def error_verdict(error: Exception, *, prefix: str = "", target: ResourceRef | None = None) -> Verdict:
    """Return the ERROR of a rule: the text of a typed error, and for a fault its kind, without a value.

    >>> error_verdict(TypeError("'hunter2' is no int")).message
    'internal error: a value has an unexpected type (fault-type)'
    """
    if isinstance(error, PyvernoError):
        return Verdict(Status.ERROR, f"{prefix}{error.message}", target=target)
    fault = fault_of(error)
    text = _WORDS[fault.code]
    if fault.code != "fault-depth":  # a limit that objects and policies can reach, and no bug
        text = f"internal error: {text} ({fault.code})"
    return Verdict(Status.ERROR, f"{prefix}{text}", fault, target=target)
