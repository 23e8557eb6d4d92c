"""The work of calls: the steps that a function needs for its operands, declared beside its signatures.

A step takes roughly a microsecond of one processor. The call site charges the steps to the budget of the review before
the call; they are not part of the cost that cel-go counts. A call of more than `LONGEST_CALL` steps is rejected,
because nothing could stop it. Work that becomes known only during a call (matches, equal parts) is charged by the
function itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from pyverno.lang.cel.values import Optional, Value, map_items, size_of

__all__ = [
    "LONGEST_CALL",
    "Work",
    "comparing",
    "instant",
    "nodes",
    "pairing",
    "reading",
    "sorting",
    "text_size",
    "together",
    "walking",
    "whole",
]

Work: TypeAlias = Callable[[tuple[Value, ...]], int]
"""Steps that a call takes at most, from its operands; it must take operands of any type, in constant time or nearly."""

LONGEST_CALL: Final = 200_000
"""Steps of the longest call that nothing interrupts: about 0.2 s."""

PER_OBJECT: Final = 3
"""Steps for a value that is neither JSON nor bytes: a timestamp takes some arithmetic to be written."""

PER_STEP: Final = 256
"""Bytes, characters or elements that C code passes over in a step."""


def instant(_operands: tuple[Value, ...]) -> int:
    """Take the same short time for all operands."""
    return 0


def text_size(value: Value) -> int:
    """Return the size of a text, list or map, or of what an optional holds; 1 for everything else."""
    if isinstance(value, Optional) and value.present:
        return text_size(value.value)
    size = size_of(value)
    return 1 if size is None else size


def reading(position: int = 0, *, per_step: int = PER_STEP) -> Work:
    """Pass over an operand once, in C; `per_step` of its parts take a step."""
    return lambda operands: text_size(operands[position]) // per_step


def walking(position: int = 0, *, steps: int = 1, per: int = 1) -> Work:
    """Pass over an operand in Python; `per` of its parts take `steps` steps."""
    return lambda operands: text_size(operands[position]) * steps // per


def together(*parts: Work) -> Work:
    """Run several functions one after the other."""
    return lambda operands: sum([part(operands) for part in parts])


def pairing(one: int = 0, other: int = 1) -> Work:
    """Compare each element of one list with each of another; parts of elements are charged by the comparison."""
    return lambda operands: text_size(operands[one]) * text_size(operands[other]) // 4


def comparing(one: int = 0) -> Work:
    """Compare each element of a list with a value; parts of elements are charged by the comparison."""
    return lambda operands: text_size(operands[one]) // 4


def sorting(position: int = 0) -> Work:
    """Sort a list by comparisons in Python."""

    def steps(operands: tuple[Value, ...]) -> int:
        size = text_size(operands[position])
        return size * size.bit_length()

    return steps


def nodes(position: int = 0, *, bytes_per_step: int = PER_STEP, steps: int = 1) -> Work:
    """Visit everything in an operand, at `steps` each; texts also count by their length."""
    return lambda operands: steps * _visits([operands[position]], steps * bytes_per_step)


def whole(*, bytes_per_step: int = 16) -> Work:
    """Write everything in all operands as JSON."""
    return lambda operands: 2 * _visits(list(operands), 2 * bytes_per_step)


def _visits(waiting: list[Value], bytes_per_step: int) -> int:
    # takes about a tenth of a step for each part, and ends where the call would be refused
    total = 0
    while waiting and total <= LONGEST_CALL:
        value = waiting.pop()
        total += 1
        if isinstance(value, (str, bytes)):
            total += len(value) // bytes_per_step
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, dict):
            for pair in map_items(value):
                waiting.extend(pair)
        elif isinstance(value, Optional):
            waiting.append(value.value)
        elif not isinstance(value, (int, float, type(None))):
            total += PER_OBJECT
            fields = getattr(value, "fields", None)
            if isinstance(fields, dict):
                waiting.extend(fields.values())
    return total
