"""A harness for reconcilers: a clock that tests advance, objects in memory, and a controller that runs until idle.

async with running(controller) as harness:
    objects.put(body)
    await harness.settle()           # everything that is due now is done
    await harness.advance(seconds)   # timers, backoff and resync come due
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pyverno.cluster.informer import Notice
from pyverno.controllers.runtime.reconcile import Controller
from pyverno.kube.json import JSONObject

__all__ = ["CountedMetrics", "FakeClock", "Harness", "MemoryObjects", "running"]

_TURNS = 50
"""Turns of the event loop after which work without real input and output is done."""


@dataclass
class _Call:
    call: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Cancel the call."""
        self.is_cancelled = True


class FakeClock:
    """A clock that stands still until `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._calls: list[tuple[float, int, _Call]] = []
        self._numbers = itertools.count()

    def now(self) -> float:
        """Return the current time."""
        return self._now

    def call_at(self, when: float, call: Callable[[], None]) -> _Call:
        """Schedule a call at a time of this clock."""
        made = _Call(call)
        heapq.heappush(self._calls, (when, next(self._numbers), made))
        return made

    async def advance(self, seconds: float) -> None:
        """Advance the time; due calls run in order, each with its consequences before the next."""
        end = self._now + seconds
        while self._calls and self._calls[0][0] <= end:
            self._now, _, made = heapq.heappop(self._calls)
            if not made.is_cancelled:
                made.call()
                await rest()
        self._now = end
        await rest()


async def rest() -> None:
    """Let the event loop run until only timers and input are left."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class MemoryObjects:
    """Objects of one kind with the interface of an informer; `put` and `delete` simulate changes of a cluster."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], JSONObject] = {}
        self._listeners: list[Callable[[Notice, JSONObject], None]] = []

    def listen(self, listener: Callable[[Notice, JSONObject], None]) -> None:
        """Call the listener at every later change."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Send the existing objects, then wait until cancelled."""
        for body in self.all():
            self._tell(Notice.ADDED, body)
        await asyncio.Event().wait()

    def get(self, name: str, namespace: str = "") -> JSONObject | None:
        """Return an object, or None."""
        return self._objects.get((namespace, name))

    def all(self) -> Iterator[JSONObject]:
        """Yield the objects in order of their names."""
        yield from (body for _, body in sorted(self._objects.items()))

    def put(self, body: JSONObject) -> None:
        """Create or change an object."""
        place = body["metadata"].get("namespace") or "", body["metadata"]["name"]
        notice = Notice.MODIFIED if place in self._objects else Notice.ADDED
        self._objects[place] = body
        self._tell(notice, body)

    def delete(self, name: str, namespace: str = "") -> None:
        """Delete an object."""
        self._tell(Notice.DELETED, self._objects.pop((namespace, name)))

    def _tell(self, notice: Notice, body: JSONObject) -> None:
        for listener in self._listeners:
            listener(notice, body)


@dataclass
class CountedMetrics:
    """Counts the metrics of the reconcile loop by controller."""

    reconciles: Counter[str] = field(default_factory=Counter)
    requeues: list[tuple[str, int]] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)

    def reconciled(self, controller: str) -> None:
        """Count one reconcile."""
        self.reconciles[controller] += 1

    def requeued(self, controller: str, times: int) -> None:
        """Count a retry after this many failures in a row."""
        self.requeues.append((controller, times))

    def gave_up(self, controller: str) -> None:
        """Count a key that is dropped, after its retries or for lack of space."""
        self.drops[controller] += 1


@dataclass
class Harness:
    """A running controller and its clock."""

    controller: Controller[Any]
    clock: FakeClock

    async def settle(self) -> None:
        """Run everything that is due now."""
        await rest()

    async def advance(self, seconds: float) -> None:
        """Advance the time."""
        await self.clock.advance(seconds)


@asynccontextmanager
async def running(controller: Controller[Any], clock: FakeClock) -> AsyncIterator[Harness]:
    """Run a controller that uses this clock, and stop it at the end."""
    task = asyncio.create_task(controller.run())
    await rest()
    try:
        yield Harness(controller, clock)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
