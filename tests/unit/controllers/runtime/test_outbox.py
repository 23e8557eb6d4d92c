"""Writes survive outages of the API server; writes that are given up are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pyverno.controllers.runtime import outbox
from pyverno.controllers.runtime.outbox import Outbox
from pyverno.errors import HostError
from pyverno.kube.status import StatusError


class Writer:
    """Records writes; the first ones raise the given errors."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = list(refusals)
        self.written: list[str] = []
        self.lost: list[tuple[str, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def write(self, item: str) -> None:
        await self.gate.wait()
        if self.refusals:
            raise self.refusals.pop(0)
        self.written.append(item)

    def lose(self, item: str, reason: str) -> None:
        self.lost.append((item, reason))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_FIRST_PAUSE", 0.001)


def work(desk: Writer, act: Callable[[Outbox[str]], Awaitable[None]], **settings: float) -> None:
    async def run() -> None:
        box = Outbox(desk.write, on_lost=desk.lose, **settings)  # type: ignore[arg-type]  # numbers of either kind
        running = asyncio.create_task(box.run())
        await act(box)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())


def test_an_item_is_tried_until_the_server_is_back() -> None:
    """It survives an outage, a 503 and a conflict."""
    desk = Writer(
        HostError("away"), StatusError(503, "ServiceUnavailable", "later"), StatusError(409, "Conflict", "again")
    )

    async def act(box: Outbox[str]) -> None:
        assert box.put("a")
        await box.flush(10)
        assert 0 == len(box)

    work(desk, act)
    assert (["a"], []) == (desk.written, desk.lost)


def test_a_permanent_refusal_is_reported_at_once() -> None:
    """Other items are still written."""
    desk = Writer(StatusError(403, "Forbidden", "you may not"))

    async def act(box: Outbox[str]) -> None:
        box.put("a")
        box.put("b")
        await box.flush(10)

    work(desk, act, writers=1)
    assert (["b"], [("a", "you may not")]) == (desk.written, desk.lost)


def test_an_item_that_is_too_old_is_given_up() -> None:
    """Its last error is reported as the reason."""
    desk = Writer(*[HostError("away")] * 50)

    async def act(box: Outbox[str]) -> None:
        box.put("a")
        await box.flush(10)

    work(desk, act, retry_seconds=0.0)
    assert ([], [("a", "away")]) == (desk.written, desk.lost)


def test_a_full_outbox_takes_nothing_more() -> None:
    """`put` reports the item as lost instead of blocking."""
    desk = Writer()
    desk.gate.clear()

    async def act(box: Outbox[str]) -> None:
        taken = [box.put(name) for name in "abc"]
        assert [True, True, False] == taken
        desk.gate.set()
        await box.flush(10)

    work(desk, act, max_items=2)
    assert (["a", "b"], [("c", "too many are waiting to be written")]) == (desk.written, desk.lost)


def test_an_outbox_has_a_limit_of_bytes() -> None:
    """A single oversized item is accepted, and written items free their bytes."""
    desk = Writer()
    desk.gate.clear()
    weights = {"large": 11, "a": 4, "b": 6, "c": 1}

    async def act(box: Outbox[str]) -> None:
        assert [True, False] == [box.put("large"), box.put("c")]
        desk.gate.set()
        await box.flush(10)
        desk.gate.clear()
        assert [True, True] == [box.put("a"), box.put("b")]
        await asyncio.sleep(0)  # an item in work counts as well
        assert not box.put("c")
        desk.gate.set()
        await box.flush(10)
        assert box.put("c")
        await box.flush(10)

    async def run() -> None:
        box = Outbox(desk.write, on_lost=desk.lose, weigh=weights.__getitem__, max_bytes=10)
        running = asyncio.create_task(box.run())
        await act(box)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert ["large", "a", "b", "c"] == desk.written
    assert [("c", "too many are waiting to be written")] * 2 == desk.lost


def test_unwritten_items_are_reported_at_the_end() -> None:
    """Both the item in work and waiting items are reported."""
    desk = Writer()
    desk.gate.clear()

    async def act(box: Outbox[str]) -> None:
        box.put("a")
        box.put("b")
        await asyncio.sleep(0)
        await box.flush(0.01)

    work(desk, act, writers=1)
    assert [("b", "the process ends"), ("a", "the process ends")] == desk.lost


def test_an_unexpected_exception_costs_one_item() -> None:
    """The writer continues with the next item."""
    desk = Writer(ValueError("oops"))

    async def act(box: Outbox[str]) -> None:
        box.put("a")
        box.put("b")
        await box.flush(10)

    work(desk, act, writers=1)
    assert (["b"], [("a", "an internal error occurred; see the log")]) == (desk.written, desk.lost)


def test_a_bug_of_one_item_costs_that_item() -> None:
    """Weighing, writing and reporting a loss may each break: the others are written, and flushing ends."""
    desk = Writer(TypeError("no"))

    def weigh(item: str) -> int:
        if item == "odd":
            raise KeyError(item)
        return 1

    def lose(item: str, reason: str) -> None:
        desk.lose(item, reason)
        raise AttributeError(reason)

    async def run() -> None:
        box = Outbox(desk.write, on_lost=lose, weigh=weigh, writers=1)
        running = asyncio.create_task(box.run())
        for item in ("broken", "odd", "fine"):
            assert box.put(item)
        await box.flush(30)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    assert ["odd", "fine"] == desk.written
    assert [("broken", "an internal error occurred; see the log")] == desk.lost


def test_a_source_leaves_room_for_others() -> None:
    """A flood of one caller fills four fifths of the queue at most, and its items leave the count when they end."""
    desk = Writer()

    async def act() -> None:
        box = Outbox(desk.write, on_lost=desk.lose, max_items=10, source_of=lambda item: item[0])
        assert [True] * 8 + [False] * 4 == [box.put(f"f{number}") for number in range(12)]
        assert [True, True, False] == [box.put(f"r{number}") for number in range(3)]
        running = asyncio.create_task(box.run())
        await box.flush(5)
        assert 10 == len(desk.written)
        assert box.put("f again")
        running.cancel()

    asyncio.run(act())
