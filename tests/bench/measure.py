"""Measurement: processor time of two functions that take turns, the least of several rounds.

Absolute figures depend on the machine, ratios hardly do. This module must never know what is measured.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["Pair", "compare", "compare_commands", "without_garbage_collection"]

ROUNDS = 9
_ROUND_SECONDS = 0.04


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds of processor time of the measured function and of its reference."""

    measured: float
    reference: float

    @property
    def ratio(self) -> float:
        """The one divided by the other."""
        return self.measured / self.reference


def compare(measured: Callable[[], object], reference: Callable[[], object], *, rounds: int = ROUNDS) -> Pair:
    """Return the processor time of one call of each, with the garbage collector off."""
    with without_garbage_collection():
        counts = [_calls_per_round(function) for function in (measured, reference)]
        best = [float("inf"), float("inf")]
        for _ in range(rounds):
            for index, function in enumerate((measured, reference)):
                best[index] = min(best[index], _seconds(function, counts[index]))
    return Pair(*best)


def compare_commands(measured: Sequence[str], reference: Sequence[str], *, rounds: int = ROUNDS) -> Pair:
    """Return the processor time (user and system) of whole processes, with compiled bytecode as when installed."""
    best = [float("inf"), float("inf")]
    with tempfile.TemporaryDirectory() as folder:
        # the bytecode is apart, so that the source tree stays clean
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in (measured, reference):
            _process_seconds(command, environment)
        for _ in range(rounds):
            for index, command in enumerate((measured, reference)):
                best[index] = min(best[index], _process_seconds(command, environment))
    return Pair(*best)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off for a while, so that no measurement pays for another one's objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _calls_per_round(function: Callable[[], object]) -> int:
    function()
    started = time.process_time()
    calls = 0
    while time.process_time() - started < _ROUND_SECONDS:
        function()
        calls += 1
    return max(calls, 1)


def _seconds(function: Callable[[], object], calls: int) -> float:
    started = time.process_time()
    for _ in range(calls):
        function()
    return (time.process_time() - started) / calls


def _process_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
