"""Inputs that grow, and how the cost of a call grows with them: the doubling law.

A `Subject` is something that a request can reach, with the ways its input can grow (`shapes`). `doubling` finds a size
where a call takes long enough to be measured and compares it with twice that size; `worst_shapes` searches for the
shapes that cost most. This module must never know what the subjects are.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from pyverno.errors import BudgetExceededError, PyvernoError
from pyverno.kube.yaml.events import Fault
from pyverno.lang.runtime import Budget

__all__ = [
    "LARGEST",
    "Call",
    "Charged",
    "Doubling",
    "Shape",
    "Subject",
    "broken_laws",
    "calls_of",
    "charged",
    "doubling",
    "lines_run",
    "worst_shapes",
]

Call = Callable[[Budget], object]
Shape = Callable[[int], Call]
"""Makes the call for a size; what it does to make the input is not measured."""

LARGEST = 1 << 20
MEASURABLE = 0.002
LIMIT = 2.6
ROUNDS = 3
ATTEMPTS = 6
STEEP = 2
CLEAR = 0.03
STEP_SECONDS = 4e-6
"""The time that a step pays for: a review has a million steps."""

LINES_PER_STEP = 40
"""Lines of Python that take as long."""

LONG = 1.0
UNLIMITED = 1 << 62
SMALL, LARGE = 1 << 12, 1 << 17
CHEAP = 0.002
_SALT = itertools.count()


@dataclass(frozen=True, slots=True)
class Subject:
    """One function or action, and its shapes by name; `largest` is the largest size that a test may give it.

    In shapes that are `paired` what a policy gives grows as well as what an object gives, and each may meet each: twice
    the input is four times as many pairs.
    """

    name: str
    shapes: Mapping[str, Shape]
    largest: int = LARGEST
    paired: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Doubling:
    """Result of the search: the size, the seconds there and at twice the size, why it ended, and the charged steps."""

    shape: str
    size: int
    seconds: float
    doubled: float
    end: str = ""
    steps: int = 0
    limit: float = LIMIT

    @property
    def holds(self) -> bool:
        """Return whether twice the input costs about twice as much, or the budget is charged for more."""
        return bool(self.end) or self.doubled <= max(self.limit * self.seconds, STEP_SECONDS * self.steps)

    def __str__(self) -> str:
        ratio = self.doubled / self.seconds if self.seconds else 0
        return (
            f"{self.shape} at {self.size}: {self.seconds * 1000:.1f} ms, "
            f"doubled {self.doubled * 1000:.1f} ms ({ratio:.1f} x) {self.end}"
        )


@dataclass(frozen=True, slots=True)
class Charged:
    """The charge of one call: steps, bytes produced, and whether it was refused or ended in an error."""

    steps: int
    produced: int
    end: str = field(default="")


def doubling(name: str, shape: Shape, *, largest: int = LARGEST, limit: float = LIMIT) -> Doubling:
    """Compare the cost of a size and its double, at the first size where it takes a few milliseconds.

    A call that the budget refuses is bounded. Steep growth is measured again, at the next sizes too: the law is broken
    when it stays steep. Where there is no next size, the two steps before count as well: values that leave a
    cache of the processor make one or two steps steep.
    """
    size, seconds, end = 256, 0.0, ""
    _seconds(shape, 64, rounds=1)
    while True:
        seconds, end = _seconds(shape, size, rounds=1)
        if end == "refused" or size * 2 > largest:
            return Doubling(name, size, seconds, 0.0, end or "at the largest size")
        if seconds >= MEASURABLE:
            break
        size *= 2
    found, steep = Doubling(name, size, 0.0, 0.0, "never measured"), 0
    for _ in range(ATTEMPTS):
        seconds, _ = _seconds(shape, size, rounds=ROUNDS)
        doubled, end = _seconds(shape, size * 2, rounds=ROUNDS)
        end = "refused" if end == "refused" else ""
        found = Doubling(name, size, seconds, doubled, end, charged(shape, size * 2).steps, limit)
        steep = 0 if found.holds else steep + 1
        if found.holds and found.end != "":
            break
        if (steep == 0 and doubled >= CLEAR) or steep == STEEP:
            break
        if size * 4 <= largest and (steep or doubled < CLEAR) and doubled < LONG:
            size *= 2
    if steep == STEEP and doubled < LONG:
        quarter, _ = _seconds(shape, size // 4, rounds=ROUNDS)
        if doubled <= limit**3 * quarter:
            return Doubling(name, size, seconds, doubled, "flat before")
    if steep and steep < STEEP:
        return Doubling(name, size, seconds, doubled, "too quick to be clear")
    return found


def _seconds(shape: Shape, size: int, *, rounds: int) -> tuple[float, str]:
    """Return the least processor time of some calls, each with an input of its own, and how the last one ended."""
    best, end = float("inf"), ""
    for _ in range(rounds):
        # sizes that differ by more than what shapes repeat: no cache has seen the input
        call = shape(size + (1 + next(_SALT) % 32) * max(size // 256, 16))
        budget = Budget()
        # the collector goes through everything that tests have made, now and then
        gc.collect(0)
        gc.disable()
        try:
            started = time.thread_time()
            end = _end(call, budget)
            best = min(best, time.thread_time() - started)
        finally:
            gc.enable()
        if best > 1:
            break
    return best, end


def _end(call: Call, budget: Budget) -> str:
    try:
        call(budget)
    except BudgetExceededError:
        return "refused"
    except (PyvernoError, Fault):
        return ""
    return ""


def charged(shape: Shape, size: int) -> Charged:
    """Return the charge of a call of that size to a budget that limits only the size of one produced value."""
    budget = Budget(steps=UNLIMITED, produced_bytes=UNLIMITED, context_bytes=UNLIMITED, elements=UNLIMITED)
    end = _end(shape(size), budget)
    return Charged(UNLIMITED - budget.steps, UNLIMITED - budget.produced_bytes, end)


def lines_run(shape: Shape, size: int) -> tuple[int, str]:
    """Return how many lines of Python a call of that size runs that its budget is not charged for, and how it ended.

    Work inside a function in C is not counted; calls of such a function are.
    """
    call, budget, count = shape(size), Budget(), 0
    steps = budget.steps

    def trace(_frame: object, _event: str, _argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        end = _end(call, budget)
    finally:
        sys.settrace(before)
    return max(0, count - LINES_PER_STEP * (steps - budget.steps)), end


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions of Python some work calls: the same number on every machine."""
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def worst_shapes(shapes: Mapping[str, Shape], *, keep: int, tries: int = UNLIMITED, seed: int = 1) -> list[str]:
    """Return the names of the shapes that cost most at two sizes, of so many that are tried at random."""
    names = sorted(shapes)
    if len(names) > tries:
        names = Random(seed).sample(names, tries)  # noqa: S311 - shapes, no secret
    small = {name: _seconds(shapes[name], SMALL, rounds=1)[0] for name in names}
    large = {name: _seconds(shapes[name], LARGE, rounds=1)[0] for name in names if small[name] < CHEAP}
    ranked = (sorted(costs, key=costs.__getitem__, reverse=True)[:keep] for costs in (small, large))
    return list(dict.fromkeys(name for each in ranked for name in each))


def broken_laws(subject: Subject, *, keep: int = 3) -> list[str]:
    """Return the violations of the doubling law: the worst shapes of a subject whose cost grows too steeply."""
    names = worst_shapes(subject.shapes, keep=keep)
    found = (
        doubling(name, subject.shapes[name], largest=subject.largest, limit=LIMIT ** (1 + (name in subject.paired)))
        for name in names
    )
    return [f"{subject.name}: {each}" for each in found if not each.holds]
