"""Counts the operations of a function, so that a test can compare growth without a clock.

Every bytecode that Python executes counts as one operation; loops inside of C functions do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

__all__ = ["MOST_GROWTH", "growth", "operations"]

MOST_GROWTH = 2.6
"""The allowed growth of cost for an input of twice the size: n log n, with a margin."""


def operations(call: Callable[[], object]) -> int:
    """Return the number of bytecodes that a call executes.

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
    """Count with `sys.monitoring`: since Python 3.12, setting a frame's tracing in a function can miss that frame."""
    count, own = 0, get_ident()

    def add(_code: CodeType, _offset: int) -> None:
        nonlocal count
        # events come from all threads, also from those that another test has left to end
        if get_ident() == own:
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
    """Return the factor of operations between a call and one of twice the size; `make` prepares the call of a size."""
    make(1)()  # excludes one-time work
    small, large = (operations(make(each)) for each in (size, 2 * size))
    return large / small
