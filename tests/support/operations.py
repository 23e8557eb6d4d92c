"""Counts what a function does, so that a test can hold growth against growth without a clock.

Every bytecode that Python executes counts as one operation; loops inside of C functions do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["MOST_GROWTH", "growth", "operations"]

MOST_GROWTH = 2.6
"""How much more an input of twice the size may cost: n log n, with a margin."""


def operations(call: Callable[[], object]) -> int:
    """Return how many bytecodes a call executes.

    >>> operations(lambda: sum(range(1000))) < operations(lambda: [index for index in range(1000)])
    True
    """
    count = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def growth(make: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as many operations the call of twice the size takes; `make` prepares the call of a size."""
    make(1)()  # what is made once is not counted
    small, large = (operations(make(each)) for each in (size, 2 * size))
    return large / small
