"""Worker threads for reviews: how many run at once, and how those that do not return are replaced."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import suppress

import pytest

from pyverno.webhook.workers import Worker, Workers


class Gate:
    """Work that waits until it is released, and counts its concurrent runs."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.begun = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.begun += 1
        assert self.go.wait(30)
        return "done"

    def patient(self) -> str:
        """Wait as a read from the cluster does."""
        thread = threading.current_thread()
        assert isinstance(thread, Worker)
        with thread.waiting():
            return self()

    async def until(self, begun: int) -> None:
        while self.begun < begun:
            await asyncio.sleep(0.005)


def soon() -> float:
    return time.monotonic() + 30


def test_heavy_work_is_done_a_few_at_a_time_and_light_work_beside_it() -> None:
    """Heavy work starts in order; work that only waits for the cluster does not count as heavy."""

    async def run() -> None:
        workers, gate, patient, light = Workers(4, 4, 1), Gate(), Gate(), Gate()
        heavy = [asyncio.ensure_future(workers.run(gate, until=soon(), is_heavy=True)) for _ in range(3)]
        await gate.until(1)
        asked = asyncio.ensure_future(workers.run(light, until=soon()))
        await light.until(1)
        assert 1 == gate.begun
        gate.go.set()
        light.go.set()
        assert ["done"] * 4 == await asyncio.gather(*heavy, asked)
        waiting = [asyncio.ensure_future(workers.run(patient.patient, until=soon(), is_heavy=True)) for _ in range(3)]
        await patient.until(3)
        patient.go.set()
        await asyncio.gather(*waiting)
        assert (0, 0) == (workers._heavy, workers._unfinished)
        workers.stop()

    asyncio.run(run())


def test_heavy_work_runs_alone_unless_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at once make the loop wait twice as long for the interpreter, and neither ends sooner."""

    async def run() -> None:
        monkeypatch.setattr("pyverno.webhook.workers.HEAVY_SECONDS", 1000.0)
        workers, gate, light = Workers(4, 4, 2), Gate(), Gate()
        heavy = [asyncio.ensure_future(workers.run(gate, until=soon(), is_heavy=True)) for _ in range(3)]
        light.go.set()
        for _ in range(20):
            await workers.run(light, until=soon())
        assert (1, 1) == (gate.begun, workers._heavy)
        gate.go.set()
        assert ["done"] * 3 == await asyncio.gather(*heavy)
        monkeypatch.setattr("pyverno.webhook.workers.HEAVY_SECONDS", 0.02)
        stuck = Gate()
        heavy = [asyncio.ensure_future(workers.run(stuck, until=soon(), is_heavy=True)) for _ in range(3)]
        await stuck.until(2)  # nothing else happens meanwhile
        for _ in range(20):
            await workers.run(light, until=soon())
        assert (2, 2) == (stuck.begun, workers._heavy)
        stuck.go.set()
        await asyncio.gather(*heavy)
        assert (0, 0) == (workers._heavy, workers._unfinished)
        workers.stop()

    asyncio.run(run())


def test_threads_that_run_take_the_work_when_no_other_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems have a limit of threads: it costs time, and neither an answer nor a place of the pool."""
    start, refused, ended = Worker.start, [], []

    def refuse(self: Worker) -> None:
        refused.append(self)
        raise RuntimeError("can't start new thread")

    async def run() -> None:
        workers, gate = Workers(4, 4, 4), Gate()
        monkeypatch.setattr(Worker, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await workers.run(lambda: 1, until=soon(), ended=lambda: ended.append(1))
        monkeypatch.setattr(Worker, "start", start)
        first = asyncio.ensure_future(workers.run(gate, until=soon()))
        await gate.until(1)
        assert [1] == ended
        monkeypatch.setattr(Worker, "start", refuse)
        others = [asyncio.ensure_future(workers.run(lambda: 2, until=soon())) for _ in range(3)]
        while workers._unfinished < 4:
            await asyncio.sleep(0.005)
        assert not any(each.done() for each in others)
        gate.go.set()
        assert ["done", 2, 2, 2] == await asyncio.gather(first, *others)
        monkeypatch.setattr(Worker, "start", start)
        many = Gate()
        all_four = [asyncio.ensure_future(workers.run(many, until=soon())) for _ in range(4)]
        await many.until(4)
        many.go.set()
        await asyncio.gather(*all_four)
        assert (0, 0) == (workers._heavy, workers._unfinished)
        workers.stop()

    asyncio.run(run())
    assert len(refused) > 3


def test_heavy_work_that_is_overdue_makes_room_for_other_work() -> None:
    """Work that waited beyond its deadline never starts."""

    async def run() -> None:
        workers, stuck, ended = Workers(2, 1, 1), Gate(), []
        late = Gate()

        async def give_up(gate: Gate, seconds: float) -> None:
            until = time.monotonic() + seconds
            with pytest.raises(TimeoutError):
                await workers.run(gate, until=until, is_heavy=True, ended=lambda: ended.append(gate))

        await asyncio.gather(give_up(stuck, 0.4), give_up(late, 0.1))
        assert (1, 1, 0, [late]) == (workers.overdue, stuck.begun, late.begun, ended)
        assert 7 == await workers.run(lambda: 7, until=soon(), is_heavy=True)
        stuck.go.set()
        while workers.overdue:
            await asyncio.sleep(0.005)
        assert ([late, stuck], 0, 0) == (ended, workers._heavy, workers._unfinished)
        workers.stop()

    asyncio.run(run())


def test_work_that_is_given_up_while_it_waits_is_counted_once() -> None:
    """Returning late does not count it again."""

    async def run() -> None:
        workers, gate = Workers(2, 2, 1), Gate()
        with pytest.raises(TimeoutError):
            await workers.run(gate.patient, until=time.monotonic() + 0.3, is_heavy=True)
        assert (1, 0) == (workers.overdue, workers._heavy)
        gate.go.set()
        while workers.overdue:
            await asyncio.sleep(0.005)
        assert (0, 0) == (workers._heavy, workers._unfinished)
        with pytest.raises(TimeoutError):
            await workers.run(gate, until=time.monotonic() - 1, is_heavy=True)
        assert 1 == await workers.run(lambda: 1, until=soon(), is_heavy=True)
        assert (0, 0) == (workers._heavy, workers._unfinished)
        workers.stop()

    asyncio.run(run())


def test_what_work_raises_is_raised_to_its_caller() -> None:
    """Any exception reaches the caller, and the thread stays usable."""

    async def run() -> None:
        workers = Workers(1, 0, 1)

        def fail() -> None:
            raise RecursionError("deep")

        with pytest.raises(RecursionError):
            await workers.run(fail, until=soon())
        assert 1 == await workers.run(lambda: 1, until=soon())
        workers.stop()

    asyncio.run(run())


class RefusedError(Exception):
    """An error whose frames hold what the work held."""


def test_an_error_of_the_work_is_freed_once_it_is_handled() -> None:
    """It leaves no reference cycle, whose frames would hold the body of a review until a collection."""

    async def run() -> list[RefusedError]:
        workers = Workers(1, 1, 1)

        def refuse() -> None:
            raise RefusedError

        gc.disable()
        try:
            with suppress(RefusedError):
                await workers.run(refuse, until=soon())
            assert "done" == await workers.run(lambda: "done", until=soon())  # by the thread that held the error
            workers.stop()
            return [each for each in gc.get_objects() if isinstance(each, RefusedError)]
        finally:
            gc.enable()

    assert [] == asyncio.run(run())


def test_an_exception_that_no_future_can_hold_is_an_error() -> None:
    """StopIteration ends a future of Python 3.11 in no way; its caller must not wait until the deadline."""

    def stopped() -> str:
        raise StopIteration

    async def run() -> None:
        workers = Workers(1, 1, 1)
        with pytest.raises(RuntimeError):
            await workers.run(stopped, until=soon())
        assert "next" == await workers.run(lambda: "next", until=soon())
        workers.stop()

    asyncio.run(run())
