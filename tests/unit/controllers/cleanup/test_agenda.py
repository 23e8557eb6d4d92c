"""The agenda: it calls every key at its time, bounds the number of keys in work, and needs little memory for each."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from pyverno.controllers.cleanup.agenda import Agenda
from tests.support.controllers import FakeClock


class Board:
    """An agenda on a clock that tests advance."""

    def __init__(self, max_due: int = 1000) -> None:
        self.clock = FakeClock()
        self.called: list[tuple[str, float]] = []
        self.shift: float | None = 0.0
        self.agenda: Agenda[str] = Agenda(self.now, self._call, max_due=max_due, clock=self.clock)

    def now(self) -> float | None:
        """Return the time for comparison with entries, None while it is unknown."""
        return None if self.shift is None else self.clock.now() + self.shift

    def _call(self, key: str) -> None:
        self.called.append((key, self.clock.now()))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50)), max_size=40))
def test_every_key_is_called_once_at_its_latest_time(puts: list[tuple[str, int]]) -> None:
    """A later `put` replaces the time of a key; calls come in order and never early."""
    board = Board()
    wanted: dict[str, int] = {}
    for key, when in puts:
        board.agenda.put(key, float(when))
        wanted[key] = when
    asyncio.run(board.clock.advance(60))
    assert sorted(wanted) == sorted(key for key, _ in board.called)
    assert sorted(wanted.values()) == [wanted[key] for key, _ in board.called]
    assert all(0 <= at - wanted[key] < 0.01 for key, at in board.called)


def test_a_discarded_key_is_not_called() -> None:
    """A postponed key is not called at its earlier time either."""
    board = Board()
    for key in "abc":
        board.agenda.put(key, 10)
    board.agenda.discard("a")
    board.agenda.put("b", 100)
    board.agenda.discard_all(lambda key: key == "c")
    asyncio.run(board.clock.advance(50))
    assert [] == board.called
    assert 1 == len(board.agenda)


def test_the_number_of_keys_in_work_is_bounded() -> None:
    """The other keys follow in order as keys are done."""
    board = Board(max_due=2)
    for number in range(5):
        board.agenda.put(str(number), number)
    asyncio.run(board.clock.advance(10))
    assert ["0", "1"] == [key for key, _ in board.called]
    for key, _ in tuple(board.called):
        board.agenda.done(key)
    asyncio.run(board.clock.advance(1))
    assert ["0", "1", "2", "3"] == [key for key, _ in board.called]


def test_nothing_is_due_while_the_time_is_unknown() -> None:
    """Overdue keys are called once the time is known."""
    board = Board()
    board.shift = None
    board.agenda.put("a", 5)
    asyncio.run(board.clock.advance(100))
    assert [] == board.called
    board.shift = 0.0
    board.agenda.wake()
    asyncio.run(board.clock.advance(1))
    assert ["a"] == [key for key, _ in board.called]


def test_a_time_that_jumps_is_followed() -> None:
    """After a jump the agenda compares with the new time, not with the timer that it started before."""
    board = Board()
    board.agenda.put("a", 3600)
    board.shift = 3600.0
    board.agenda.wake()
    asyncio.run(board.clock.advance(1))
    assert ["a"] == [key for key, _ in board.called]


def test_an_entry_takes_few_bytes() -> None:
    """Less than 300 bytes besides the key, also after repeated postponements."""
    keys = [f"key-{number}" for number in range(10_000)]
    board = Board()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for times in range(3):
        for number, key in enumerate(keys):
            board.agenda.put(key, 1e9 + number + times)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used / len(keys) < 300


def test_a_bug_of_the_receiver_delays_one_key() -> None:
    """The other keys are called at their times, and the one that broke is called again."""
    board, broken = Board(), ["b"]

    def call(key: str) -> None:
        if key in broken:
            broken.remove(key)
            raise KeyError(key)
        board.called.append((key, board.clock.now()))

    board.agenda = Agenda(board.now, call, clock=board.clock)
    for key in "abc":
        board.agenda.put(key, 5)
    asyncio.run(board.clock.advance(60))
    assert ["a", "c", "b"] == [key for key, _ in board.called]


def test_a_bug_while_times_are_compared_stops_no_timer() -> None:
    """The agenda looks again a moment later."""
    board, broken = Board(), [True]

    def now() -> float:
        if broken and board.clock.now() >= 5:
            broken.pop()
            raise OverflowError
        return board.clock.now()

    board.agenda = Agenda(now, board._call, clock=board.clock)
    board.agenda.put("a", 5)
    asyncio.run(board.clock.advance(60))
    assert ["a"] == [key for key, _ in board.called]
    assert not broken
