"""An event loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from pyverno.errors import HostError, PyvernoError

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """Runs coroutines on its own loop; use it as a context manager, or `close` it at the end.

    with LoopThread("registry") as thread:
        thread.run(asyncio.sleep(0.1))
    """

    def __init__(self, name: str, seconds: float = 60.0) -> None:
        """Start the thread; `seconds` is the time limit of `ask`."""
        self._seconds = seconds
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        self._loop, self._end = self._started.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Return the result of a coroutine; raises TimeoutError after so many seconds, by default never."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result(seconds)
        finally:
            running.cancel()

    def ask(self, asking: Coroutine[Any, Any, T], what: str) -> T:
        """Return the answer of a coroutine; raises HostError when it takes too long."""
        running = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            # an error is not raised where the loop keeps it: its traceback would keep the frames of the caller as well
            error = running.exception(self._seconds)
        except TimeoutError:
            running.cancel()
            raise HostError(f"{what}: no answer within {self._seconds:g} seconds") from None
        if error is None:
            return running.result()
        raise error.copied() if isinstance(error, PyvernoError) else error

    def close(self) -> None:
        """Cancel the tasks that still run, and end the loop and its thread; a second call does nothing."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _work(self) -> None:
        try:
            # cancels what is left of tasks, generators and threads at the end
            asyncio.run(self._wait())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _wait(self) -> None:
        end = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), end))
        await end.wait()
