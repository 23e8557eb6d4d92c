"""Worker processes of the playground: started in advance, with one request at a time, killed at the time limit."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import orjson

from pyverno.errors import HostError, UsageError
from pyverno.kube.json import JSONObject
from pyverno.ui.playground.turns import Turns
from pyverno.ui.playground.worker import LENGTH_BYTES

# trust rows: environment, own-process

__all__ = ["PlaygroundWorkers"]

_WORKERS: Final = 2
_WAITING: Final = 20
_SECONDS: Final = 10.0
_START_SECONDS: Final = 60.0
_MOST_REVIEWS: Final = 200
_MOST_ANSWER: Final = 32 * 1024 * 1024
# the working folder may be a stranger's: without -P its modules came first
_WORDS: Final = ("-P", "-m", "pyverno.ui.playground.worker")  # guard: no playground by stray modules
_KEPT_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


class _Worker:
    """One process, and the number of its reviews."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_ready = False
        self.reviews = 0

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def begin(self) -> None:
        """Wait until the process has loaded what reviews need: the first message, which is empty."""
        if not self._is_ready and self._process.stdout is not None:
            await self._process.stdout.readexactly(LENGTH_BYTES)
            self._is_ready = True

    async def ask(self, request: JSONObject) -> JSONObject:
        """Return the answer to a request; the process must have begun."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise HostError("the playground has no streams")
        body = orjson.dumps(request)
        stdin.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        await stdin.drain()
        length = int.from_bytes(await stdout.readexactly(LENGTH_BYTES), "big")
        if length > _MOST_ANSWER:
            raise HostError(f"the answer has more than {_MOST_ANSWER} bytes: review less at once")
        self.reviews += "review" in request
        return _read_answer(await stdout.readexactly(length))

    async def end(self) -> None:
        if self.is_alive:
            self._process.kill()
        await self._process.wait()


class PlaygroundWorkers:
    """Reviews requests in processes; an async context manager."""

    def __init__(self, *, workers: int = _WORKERS, seconds: float = _SECONDS) -> None:
        """Take the number of simultaneous reviews, and the time limit of each in seconds."""
        self._seconds = seconds
        self._turns = Turns(workers, _WAITING)
        self._free: deque[_Worker] = deque()
        self._spare: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._prepare()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._spare, return_exceptions=True)
        for worker in self._free:
            await worker.end()

    async def review(self, request: JSONObject) -> JSONObject:
        """Return the review of texts; raises UsageError for a bad request, HostError when it takes too much."""
        return await self.run("review", request)

    async def run(self, task: str, body: JSONObject, *, client: str = "") -> JSONObject:
        """Return what a task of the worker answers; raises UsageError and HostError as `review` does.

        Slots are shared fairly among clients, so that one of them cannot keep out the others.
        """
        async with self._turns.turn(client):
            answer = await self._ask({task: body})
        if "error" in answer:
            raise HostError(answer["error"]) if "fault" in answer else UsageError(answer["error"])
        found: JSONObject = answer["answer"]
        return found

    async def _ask(self, request: JSONObject) -> JSONObject:
        worker = await self._take()
        is_well = False
        try:
            await self._begin(worker)
            async with asyncio.timeout(self._seconds):
                answer = await worker.ask(request)
            is_well = worker.reviews < _MOST_REVIEWS and "fault" not in answer
            return answer
        except TimeoutError:
            raise HostError(f"the review takes longer than {self._seconds:g} seconds") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise HostError("the review needs more memory or time than the playground allows") from None
        finally:
            if is_well:
                self._free.append(worker)
            else:
                await worker.end()
                self._prepare()

    async def _begin(self, worker: _Worker) -> None:
        """Wait for the start of a process, outside of the review's time limit; raises HostError."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await worker.begin()
        except TimeoutError:
            raise HostError(f"the playground does not start within {_START_SECONDS:g} seconds: try again") from None

    async def _take(self) -> _Worker:
        while self._free:
            worker = self._free.popleft()
            if worker.is_alive:
                return worker
        return await _start()

    def _prepare(self) -> None:
        """Start a process ahead of the next request."""

        async def start() -> None:
            with suppress(HostError):  # the next request tries again, and reports it
                self._free.append(await _start())

        task = asyncio.ensure_future(start())
        self._spare.add(task)
        task.add_done_callback(self._spare.discard)


async def _start() -> _Worker:
    # a visitor's policy must not see the server's environment (tokens, proxies, kubeconfigs)
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    try:
        return _Worker(
            await asyncio.create_subprocess_exec(sys.executable, *_WORDS, stdin=PIPE, stdout=PIPE, env=environment)
        )
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise HostError(f"the playground cannot start a process: {reason}") from error


def _read_answer(body: bytes) -> JSONObject:
    """Return what a worker answers; raises HostError for what no sound worker writes."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if isinstance(answer, dict) and (isinstance(answer.get("answer"), dict) or isinstance(answer.get("error"), str)):
        return answer
    raise HostError("the playground gave no sound answer: try again")
