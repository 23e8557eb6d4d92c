"""The clauses of a format text: `%s`, `%.2f` and the others, with the text between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.faults import OperandError
from pyverno.value import dataclass

__all__ = ["Clause", "clauses"]

MAX_PRECISION: Final = 1_000
DEFAULT_PRECISION: Final = 6
_VERBS: Final = frozenset("sdfebxXo")


@dataclass(frozen=True, slots=True)
class Clause:
    """A place for one value: how it is printed, and the digits after the point."""

    verb: str
    precision: int


def clauses(text: str, values: int) -> Iterator[str | Clause]:
    """Yield texts and clauses in their order; raises EvaluationError at a clause that is malformed or has no value.

    >>> list(clauses("a %% %.2f", 1))
    ['a ', '%', ' ', Clause(verb='f', precision=2)]
    """
    position = used = 0
    while position < len(text):
        percent = text.find("%", position)
        if percent < 0:
            yield text[position:]
            return
        if percent > position:
            yield text[position:percent]
        if percent + 1 >= len(text):
            raise EvaluationError("unexpected end of string")
        if text[percent + 1] == "%":
            yield "%"
            position = percent + 2
            continue
        if used >= values:
            raise EvaluationError(f"index {used} out of range")
        used += 1
        precision, position = _precision(text, percent + 1)
        if position >= len(text):
            raise EvaluationError("could not parse formatting clause: could not find end of clause")
        verb = text[position]
        if verb not in _VERBS:
            problem = "could not parse formatting clause: unrecognized formatting clause"
            raise OperandError(problem, f'{problem} "{verb}"')
        yield Clause(verb, precision)
        position += 1


def _precision(text: str, position: int) -> tuple[int, int]:
    """Return the precision of a clause, and where its verb stands."""
    if text[position] != ".":
        return DEFAULT_PRECISION, position
    end = position + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    if end >= len(text) or end == position + 1:
        problem = "could not find end of precision specifier" if end >= len(text) else "no digits in precision"
        raise EvaluationError(f"could not parse formatting clause: error while parsing precision: {problem}")
    precision = int(text[position + 1 : end]) if end - position < 8 else MAX_PRECISION + 1
    if precision > MAX_PRECISION:
        problem = "could not parse formatting clause: error while parsing precision: precision"
        limit = f"exceeds maximum allowed precision {MAX_PRECISION}"
        raise OperandError(f"{problem} {limit}", f"{problem} {precision} {limit}")
    return precision, end
