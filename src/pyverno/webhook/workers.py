"""Worker threads for slow reviews, which never block the event loop.

A thread that computes without checking its deadline cannot be stopped. The caller is answered in time all the same, the
thread counts as overdue, and a spare thread replaces it up to a bound. Heavy reviews run one after the other, and a
few at a time only when they take long: one thread holds the interpreter at a time, and the loop competes with all of
them.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

__all__ = ["Worker", "Workers"]

_T = TypeVar("_T")
_FRAMES: Final = 5
HEAVY_SECONDS: Final = 0.25
"""How long heavy work runs alone, if it does not wait for I/O; then the next heavy work starts beside it."""

_QUIET_SECONDS: Final = 10.0
"""Minimum interval between log lines about threads."""

log = logging.getLogger("pyverno.webhook")


class _Work(Generic[_T]):
    """A function to call and its state: waiting, started by a thread, abandoned by the caller, or ended."""

    __slots__ = ("call", "ended", "future", "is_counted", "is_given_up", "is_heavy", "name", "thread")

    def __init__(
        self,
        call: Callable[[], _T],
        ended: Callable[[], None],
        future: asyncio.Future[_T],
        name: str,
        *,
        is_heavy: bool,
    ) -> None:
        self.call: Callable[[], _T] | None = call
        self.ended = ended
        self.future = future
        self.name = name
        self.is_heavy = is_heavy
        self.thread = 0
        self.is_given_up = False
        self.is_counted = False  # among the running heavy work


class Worker(threading.Thread):
    """A thread that reports when it waits for I/O."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        serve: Callable[[Worker, asyncio.AbstractEventLoop], None],
        pause: Callable[..., None],
    ) -> None:
        super().__init__(name="review", daemon=True)
        self.work: _Work[Any] | None = None
        self._loop = loop
        self._serve = serve
        self._pause = pause

    def run(self) -> None:
        """Work until the pool stops."""
        self._serve(self, self._loop)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let other heavy work run while this thread waits within the block."""
        work = self.work
        if work is None or not work.is_heavy:
            yield
            return
        self._loop.call_soon_threadsafe(partial(self._pause, work, goes_on=False))
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(partial(self._pause, work, goes_on=True))


class Workers:
    """A pool of `size` threads, started on demand, and up to `spare` more to replace overdue ones.

    Heavy work runs alone for `HEAVY_SECONDS`; after that up to `max_heavy` threads do heavy work at a time. Those that
    wait for I/O (`Worker.waiting`) do not count.
    Belongs to one event loop. The threads are daemons.
    """

    def __init__(self, size: int, spare: int, max_heavy: int) -> None:
        self._size = size
        self._max_heavy = max_heavy
        self._heavy = 0
        self._alone_until = 0.0
        self._next: asyncio.TimerHandle | None = None
        self._waiting: deque[_Work[Any]] = deque()
        self._most = size + spare
        self._queue: SimpleQueue[_Work[Any] | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        self._overdue: set[_Work[Any]] = set()
        self._exhausted_since = 0.0
        self._told = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def overdue(self) -> int:
        """Number of threads whose work the caller has abandoned."""
        return len(self._overdue)

    @property
    def exhausted_seconds(self) -> float:
        """The seconds for which all threads have been overdue; 0 while one is not."""
        return time.monotonic() - self._exhausted_since if len(self._overdue) >= self._most else 0.0

    async def run(
        self,
        call: Callable[[], _T],
        *,
        until: float,
        name: str = "",
        is_heavy: bool = False,
        ended: Callable[[], None] = lambda: None,
    ) -> _T:
        """Call a function in a thread and return its result; raises TimeoutError at `until` (monotonic seconds).

        The loop calls `ended` once no thread works on it any more, which may be later; a function that is still queued
        at its deadline is never called. `name` identifies overdue work in the log.
        """
        loop = self._loop = asyncio.get_running_loop()
        work = _Work(call, ended, loop.create_future(), name, is_heavy=is_heavy)
        self._waiting.append(work)
        try:
            self._begin()
            async with asyncio.timeout(until - time.monotonic()):
                return await asyncio.shield(work.future)
        finally:
            if not work.future.done():
                self._give_up(work)
            del work  # an error that is raised here would hold its own future by this frame

    def stop(self) -> None:
        """End the idle threads; overdue ones are abandoned."""
        self._forget_next()
        for _ in range(self._threads):
            self._queue.put(None)

    def _give_up(self, work: _Work[Any]) -> None:
        work.is_given_up = True
        work.future.cancel()
        if work in self._waiting:
            self._waiting.remove(work)
            work.ended()
        elif work.thread:
            self._count(work, goes_on=False)
            self._overdue.add(work)
            if len(self._overdue) == self._most:
                self._exhausted_since = time.monotonic()
            self._log_overdue(work)
            self._begin()

    def _begin(self) -> None:
        """Start all work that may start: light work at once, heavy work in order."""
        for _ in range(len(self._waiting)):
            work = self._waiting.popleft()
            if work.is_heavy and not self._admits_heavy():
                self._waiting.append(work)
                continue
            if work.is_heavy:
                self._run_alone()
            self._count(work, goes_on=True)
            self._unfinished += 1
            self._queue.put(work)
        try:
            self._grow()
        except Exception as error:  # the system has no thread left: those that run take the work
            if not self._threads:
                raise
            self._log("a thread cannot be started", {"error": type(error).__name__, "threads": self._threads})

    def _admits_heavy(self) -> bool:
        """Return whether one more heavy work may start; if only later, the loop looks again then."""
        if not self._heavy:
            return True
        if self._heavy >= self._max_heavy:
            return False
        left = self._alone_until - time.monotonic()
        if left > 0 and self._next is None and self._loop is not None:
            self._next = self._loop.call_later(left, self._begin_next)
        return left <= 0

    def _run_alone(self) -> None:
        self._alone_until = time.monotonic() + HEAVY_SECONDS
        self._forget_next()

    def _forget_next(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _begin_next(self) -> None:
        self._next = None
        self._begin()

    def _count(self, work: _Work[Any], *, goes_on: bool) -> None:
        """Count running heavy work, each once."""
        if work.is_heavy and work.is_counted is not goes_on:
            work.is_counted = goes_on
            self._heavy += 1 if goes_on else -1

    def _pause(self, work: _Work[Any], *, goes_on: bool) -> None:
        """Record that heavy work waits for I/O, or continues."""
        if not work.is_given_up:
            self._count(work, goes_on=goes_on)
            self._begin()

    def _grow(self) -> None:
        """Start a thread if work is queued and the pool is below its limit."""
        useful = self._threads - len(self._overdue)
        if useful < min(self._size, self._unfinished - len(self._overdue)) and self._threads < self._most:
            assert self._loop is not None  # noqa: S101 - `run` has set it
            Worker(self._loop, self._serve, self._pause).start()
            self._threads += 1

    def _serve(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            worker.work = None
            work = self._queue.get()
            if work is None:
                return
            result: Any = None
            error: BaseException | None = None
            worker.work = work
            work.thread = threading.get_ident()
            if not work.is_given_up:
                try:
                    assert work.call is not None  # noqa: S101 - it is called once
                    result = work.call()
                except StopIteration as raised:  # no future can hold it, and its caller would wait for ever
                    error = RuntimeError("a review raised StopIteration")
                    error.__cause__ = raised
                except BaseException as raised:  # raised again for the caller
                    error = raised
            work.call = None
            try:
                loop.call_soon_threadsafe(self._end, work, result, error)
            except RuntimeError:  # the loop is closed
                return
            del work, result, error

    def _end(self, work: _Work[Any], result: Any, error: BaseException | None) -> None:
        if not work.future.done():  # first: the caller must hear of it whatever comes
            if error is None:
                work.future.set_result(result)
            else:
                work.future.set_exception(error)
        self._unfinished -= 1
        self._overdue.discard(work)
        self._count(work, goes_on=False)
        if self._threads - len(self._overdue) > self._size:
            self._threads -= 1
            self._queue.put(None)
        work.ended()
        self._begin()

    def _log_overdue(self, work: _Work[Any]) -> None:
        """Log the stack of an overdue thread: functions and lines, never values."""
        frame = sys._current_frames().get(work.thread)
        places: list[str] = []
        while frame is not None and len(places) < _FRAMES:
            places.append(f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}:{frame.f_lineno}")
            frame = frame.f_back
        fields = {"review": work.name, "at": places, "overdue": len(self._overdue)}
        self._log("a review exceeds its deadline", fields)

    def _log(self, text: str, fields: dict[str, object]) -> None:
        """Log a trouble of threads, but not one after the other."""
        now = time.monotonic()
        if now - self._told >= _QUIET_SECONDS:
            self._told = now
            log.warning(text, extra={"fields": fields})
