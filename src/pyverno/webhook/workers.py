"""Threads for reviews that take time, which the event loop survives whatever happens in them.

Nothing can stop a thread that computes and never looks at its deadline. The caller is answered all the same, the thread
counts as overdue, and another one takes its place as long as the bound allows. This module must never know what a
thread does.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

__all__ = ["Workers"]

_T = TypeVar("_T")
_FRAMES: Final = 5
_QUIET_SECONDS: Final = 10.0
"""How often a thread that is overdue is told of at most."""

log = logging.getLogger("pyverno.webhook")


class _Work(Generic[_T]):
    """A function to call, and where it is: waiting, begun by a thread, given up by the caller, or ended."""

    __slots__ = ("call", "ended", "future", "is_given_up", "name", "thread")

    def __init__(
        self, call: Callable[[], _T], ended: Callable[[], None], future: asyncio.Future[_T], name: str
    ) -> None:
        self.call: Callable[[], _T] | None = call
        self.ended = ended
        self.future = future
        self.name = name
        self.thread = 0
        self.is_given_up = False


class Workers:
    """`size` threads, made as they are needed, and up to `spare` more in place of those that are overdue.

    Belongs to one event loop. The threads do not keep the process from ending.
    """

    def __init__(self, size: int, spare: int) -> None:
        self._size = size
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
        """How many threads go on with work that its caller has given up."""
        return len(self._overdue)

    @property
    def exhausted_seconds(self) -> float:
        """For how long all threads that there may be have been overdue; 0 while one is not."""
        return time.monotonic() - self._exhausted_since if len(self._overdue) >= self._most else 0.0

    async def run(
        self,
        call: Callable[[], _T],
        *,
        until: float,
        name: str = "",
        ended: Callable[[], None] = lambda: None,
    ) -> _T:
        """Call a function in a thread and return what it returns; raises TimeoutError at `until` (monotonic seconds).

        `ended` is called by the loop when nothing of it is left in any thread, which may be later; what waits for a
        thread when its time is over is never called. `name` says in the log what is overdue.
        """
        loop = self._loop = asyncio.get_running_loop()
        work = _Work(call, ended, loop.create_future(), name)
        self._unfinished += 1
        self._queue.put(work)
        self._grow()
        try:
            async with asyncio.timeout(until - time.monotonic()):
                return await asyncio.shield(work.future)
        finally:
            if not work.future.done():
                self._give_up(work)

    def stop(self) -> None:
        """End the threads that wait; those that are overdue are left behind."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _give_up(self, work: _Work[Any]) -> None:
        work.is_given_up = True
        work.future.cancel()
        if work.thread:
            self._overdue.add(work)
            if len(self._overdue) == self._most:
                self._exhausted_since = time.monotonic()
            self._tell(work)
            self._grow()

    def _grow(self) -> None:
        """Start a thread where work would have to wait although not all threads that there may be are there."""
        useful = self._threads - len(self._overdue)
        if useful < min(self._size, self._unfinished - len(self._overdue)) and self._threads < self._most:
            self._threads += 1
            threading.Thread(target=self._serve, args=(self._loop,), name="review", daemon=True).start()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            work = self._queue.get()
            if work is None:
                return
            result: Any = None
            error: BaseException | None = None
            work.thread = threading.get_ident()
            if not work.is_given_up:
                try:
                    assert work.call is not None  # noqa: S101 - it is called once
                    result = work.call()
                except BaseException as raised:  # it is the caller's, whatever it is
                    error = raised
            work.call = None
            try:
                loop.call_soon_threadsafe(self._end, work, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return
            del work, result, error

    def _end(self, work: _Work[Any], result: Any, error: BaseException | None) -> None:
        self._unfinished -= 1
        self._overdue.discard(work)
        if self._threads - len(self._overdue) > self._size:
            self._threads -= 1
            self._queue.put(None)
        if not work.future.done():
            if error is None:
                work.future.set_result(result)
            else:
                work.future.set_exception(error)
        work.ended()

    def _tell(self, work: _Work[Any]) -> None:
        """Log where a thread is that is overdue: functions and lines, never values."""
        now = time.monotonic()
        if now - self._told < _QUIET_SECONDS:
            return
        self._told = now
        frame = sys._current_frames().get(work.thread)
        places: list[str] = []
        while frame is not None and len(places) < _FRAMES:
            places.append(f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}:{frame.f_lineno}")
            frame = frame.f_back
        fields = {"review": work.name, "at": places, "overdue": len(self._overdue)}
        log.warning("a review goes on after its deadline", extra={"fields": fields})
