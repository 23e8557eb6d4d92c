"""Counts what a function does, so that a test can hold growth against growth without a clock.

Every bytecode that Python executes counts as one operation; loops inside of C functions do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["MOST_GROWTH", "growth", "operations"]

MOST_GROWTH = 2.6
"""How much more an input of twice the size may cost: n log n, with a margin."""


def operations(call: Callable[[], object]) -> int:
    """Return how many bytecodes a call executes.

    >>> operations(lambda: sum(range(1000))) < operations(lambda: [index for index in range(1000)])
    True
    """
    if sys.version_info >= (3, 12):
        return _monitored(call)
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


def _monitored(call: Callable[[], object]) -> int:
    """Count with `sys.monitoring`: since Python 3.12, a function that sets a frame's tracing can miss the frame."""
    count = 0

    def add(_code: CodeType, _offset: int) -> None:
        nonlocal count
        count += 1

    monitoring: Any = vars(sys)["monitoring"]
    tool, event = monitoring.PROFILER_ID, monitoring.events.INSTRUCTION
    monitoring.use_tool_id(tool, __name__)
    try:
        monitoring.register_callback(tool, event, add)
        monitoring.set_events(tool, event)
        call()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    return count


def growth(make: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return how many times as many operations the call of twice the size takes; `make` prepares the call of a size."""
    make(1)()  # what is made once is not counted
    small, large = (operations(make(each)) for each in (size, 2 * size))
    return large / small
