"""Makes random texts that match a regular expression.

The caller brings the randomness, so that a run can be replayed. The length is bounded before the text is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.errors import BudgetExceededError, EvaluationError
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.lang.regex.compiler import compile_re2
from pyverno.lang.regex.syntax import Choice, Piece, Repeat, Sequence, parse_pieces

__all__ = ["MAX_LENGTH", "generate_text"]

MAX_LENGTH: Final = 64 * 1024
"""Longest text that is made, in characters."""


def generate_text(pattern: str, random_bits: Callable[[int], int], meter: Meter = UNMETERED) -> str:
    """Return a text that matches an RE2 expression; `random_bits(n)` gives a random integer of n bits.

    `*` and `+` repeat up to 4096 times; positions such as `^` and `\\b` are ignored. Raises EvaluationError for an
    expression that RE2 refuses, BudgetExceededError for more than 64 KiB.

    >>> generate_text("[ab]{3}-x", lambda bits: 0)
    'aaa-x'
    """
    compile_re2(pattern)
    writer = _Writer(random_bits, meter)
    writer.write(parse_pieces(pattern))
    return "".join(writer.parts)


class _Writer:
    """Writes one text, piece by piece."""

    def __init__(self, random_bits: Callable[[int], int], meter: Meter) -> None:
        self._random_bits = random_bits
        self._meter = meter
        self.parts: list[str] = []
        self._length = 0

    def write(self, piece: Piece) -> None:
        match piece:
            case Sequence(pieces):
                for part in pieces:
                    self.write(part)
            case Choice(pieces):
                self.write(pieces[self._below(len(pieces))])
            case Repeat(inner, least, most):
                for _ in range(least + self._below(most - least + 1)):
                    self._meter.charge_steps(1)
                    self.write(inner)
            case _:
                self._append(self._character(piece.ranges))

    def _append(self, text: str) -> None:
        self._length += len(text)
        if self._length > MAX_LENGTH:
            raise BudgetExceededError(f"random makes at most {MAX_LENGTH} characters", resource="bytes")
        self.parts.append(text)

    def _character(self, ranges: tuple[tuple[int, int], ...]) -> str:
        if not ranges:
            raise EvaluationError("the pattern has a character class that matches nothing")
        number = self._below(sum(last - first + 1 for first, last in ranges))
        for first, last in ranges:
            if number <= last - first:
                return chr(first + number)
            number -= last - first + 1
        return ""

    def _below(self, count: int) -> int:
        """Return an even choice of 0 … count - 1."""
        if count <= 1:
            return 0
        bits = (count - 1).bit_length()
        while True:
            self._meter.charge_steps(1)
            number = self._random_bits(bits)
            if number < count:
                return number
