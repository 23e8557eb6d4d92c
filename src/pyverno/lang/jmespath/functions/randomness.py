"""The `random` function: makes a text that matches a regular expression.

Randomness comes from the runtime's world alone, so that a run can be replayed. What is produced is bounded before it
is produced. This module must never use Python's random generators.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.cost import Cost
from pyverno.lang.jmespath.function import STRING, function
from pyverno.lang.jmespath.functions.regex import compile_pattern
from pyverno.lang.jmespath.functions.regexsyntax import Choice, Piece, Repeat, Sequence, parse_pieces
from pyverno.lang.runtime import Runtime

__all__ = ["FUNCTIONS", "MAX_LENGTH"]

MAX_LENGTH: Final = 64 * 1024
"""Longest text that is made, in characters."""


@function(
    "random",
    STRING,
    returns=STRING,
    cost=Cost(per_step=1),
    note="makes a random text that matches a regular expression",
)
def random(runtime: Runtime, pattern: str) -> JSON:
    """Make a text that matches an RE2 expression; `*` and `+` repeat up to 4096 times.

    Positions such as `^` and `\\b` are not looked at. At most 64 KiB are made.

    >>> length(random('[0-9a-z]{8}'))
    8
    >>> regex_match('^(ab|cd)x?$', random('(ab|cd)x?'))
    true
    """
    if not pattern:
        raise EvaluationError("no pattern provided")
    compile_pattern(pattern)
    made = _Maker(runtime).make(parse_pieces(pattern))
    runtime.budget.produce(len(made))
    return made


class _Maker:
    """Writes one text, piece by piece."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.parts: list[str] = []
        self.length = 0

    def make(self, piece: Piece) -> str:
        self.write(piece)
        return "".join(self.parts)

    def write(self, piece: Piece) -> None:
        match piece:
            case Sequence(pieces):
                for part in pieces:
                    self.write(part)
            case Choice(pieces):
                self.write(pieces[self.below(len(pieces))])
            case Repeat(inner, least, most):
                for _ in range(least + self.below(most - least + 1)):
                    self.runtime.budget.charge_steps()
                    self.write(inner)
            case _:
                self.put(self.character(piece.ranges))

    def put(self, text: str) -> None:
        self.length += len(text)
        self.runtime.budget.charge_steps()
        if self.length > MAX_LENGTH:
            raise BudgetExceededError(f"random makes at most {MAX_LENGTH} characters", resource="bytes")
        self.parts.append(text)

    def character(self, ranges: tuple[tuple[int, int], ...]) -> str:
        if not ranges:
            raise EvaluationError("the pattern has a character class that matches nothing")
        number = self.below(sum(last - first + 1 for first, last in ranges))
        for first, last in ranges:
            if number <= last - first:
                return chr(first + number)
            number -= last - first + 1
        return ""

    def below(self, count: int) -> int:
        """Return an even choice of 0 … count - 1."""
        if count <= 1:
            return 0
        bits = (count - 1).bit_length()
        while True:
            number = self.runtime.world.random_bits(bits)
            if number < count:
                return number


FUNCTIONS: Final = (random,)
