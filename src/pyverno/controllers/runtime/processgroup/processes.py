"""The parent side of a replica with several processes: starts, monitors and restarts them, and ends them together.

Each child is a complete admission controller with its own watches; the kernel distributes connections among them
(SO_REUSEPORT). The parent serves no requests: it receives the health of every child each second, kills a child that
hangs, forwards the health of each to the others, and adds up their metrics.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from pyverno.controllers.runtime.processgroup.channel import Channel
from pyverno.errors import HostError
from pyverno.telemetry.exposition import Exposition
from pyverno.telemetry.instruments import Departed, Reading
from pyverno.telemetry.sharing import Shared
from pyverno.telemetry.snapshots import combined, unpacked, without
from pyverno.threads import in_thread

# trust rows: own-process

__all__ = ["Processes", "can_share_ports"]

_FIRST_WORD_SECONDS: Final = 120.0
"""How long a process may take to send its first message."""
_LATE_SECONDS: Final = 10.0
"""After how long without a message a process counts as not ready."""
_HANGING_SECONDS: Final = 30.0
"""After how long without a message a process is killed and replaced."""
_LOOK_SECONDS: Final = 0.5
_METRICS_SECONDS: Final = 5.0
_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Delays before a process that ended repeatedly is started again."""
_GOOD_SECONDS: Final = 60.0
"""A process that ran for this long resets the delay."""

_ORDERLY: Final = (0, -signal.SIGTERM)
"""Exit codes of an orderly shutdown; the second is that of a process that was still starting."""

log = logging.getLogger("pyverno.admission")


def can_share_ports() -> bool:
    """Return whether several processes can listen on one port on this system."""
    return hasattr(socket, "SO_REUSEPORT")


class _Process:
    """One running child process and its last reported state."""

    __slots__ = (
        "answered",
        "channel",
        "departed",
        "heard",
        "number",
        "problem",
        "readings",
        "spoke",
        "was_ready",
        "work",
    )

    def __init__(self, number: int, work: asyncio.subprocess.Process, channel: Channel) -> None:
        self.number = number
        self.work = work
        self.channel = channel
        self.problem = "has not reported its health yet"
        self.heard = time.monotonic()
        self.spoke = self.was_ready = False
        self.readings: list[Reading] = []
        self.departed: list[Departed] = []
        self.answered = asyncio.Event()

    def take_message(self, message: dict[str, Any]) -> None:
        self.heard, self.spoke = time.monotonic(), True
        if "problem" in message:
            self.problem = str(message["problem"])
            self.was_ready |= not self.problem
        if "readings" in message:
            self.readings = unpacked(message["readings"])
            self.departed += [tuple((label, value) for label, value in each) for each in message.get("departed", ())]
            self.answered.set()

    def unready_reason(self) -> str:
        """Return why the process is not ready, or the empty text."""
        silent = time.monotonic() - self.heard
        if self.spoke and silent > _LATE_SECONDS:
            return f"has sent no message for {silent:.0f} seconds"
        return self.problem

    def is_hanging(self) -> bool:
        """Return whether the process has been silent for so long that it must be killed."""
        return time.monotonic() - self.heard > (_HANGING_SECONDS if self.spoke else _FIRST_WORD_SECONDS)


class Processes:
    """Runs `count` processes of a command whose last argument is the file descriptor of a socket to the parent.

    The first message on it is `errand` with `number` (from 1) and `of` (the number of processes).
    """

    def __init__(self, command: Sequence[str], errand: dict[str, Any], count: int) -> None:
        """Take the command, its first message, and the number of processes."""
        self.begun = time.time_ns()
        """Start of the counting, in nanoseconds since 1970."""
        self._command = tuple(command)
        self._errand = errand
        self._count = count
        self._running: dict[int, _Process] = {}
        self._sent: dict[int, str] = {}
        self._gone: list[Reading] = []
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._exposition = Exposition(self._pids)
        self._scrapes = Shared(self._write)

    async def run(self, stop: asyncio.Event) -> None:
        """Keep all processes running until `stop` is set, then shut them down.

        Raises HostError when one cannot be started at all, or does not shut down in order.
        """
        seats = [asyncio.create_task(self._keep(number)) for number in range(1, self._count + 1)]
        waiting, monitoring = asyncio.create_task(stop.wait()), asyncio.create_task(self._monitor())
        try:
            await asyncio.wait((*seats, waiting, monitoring), return_when=asyncio.FIRST_COMPLETED)
            seats.sort(key=lambda seat: not seat.done())  # the error to raise is that of the one that ended by itself
            self._stopping.set()
            for each in self._running.values():
                _signal(each, kills=False)
            ends = await asyncio.gather(*seats, return_exceptions=True)
        finally:
            for task in (*seats, waiting, monitoring):
                task.cancel()
            await asyncio.gather(*seats, waiting, monitoring, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        if not monitoring.cancelled():
            monitoring.result()

    async def gather(self) -> list[Reading]:
        """Return the metrics of all processes, ended ones included; the last known ones of those that do not answer."""
        asked = list(self._running.values())
        for each in asked:
            each.answered.clear()
            each.channel.send({"ask": "metrics"})
        with suppress(TimeoutError):
            async with asyncio.timeout(_METRICS_SECONDS):
                await asyncio.gather(*(each.answered.wait() for each in asked))
        departed = [gone for each in asked for gone in each.departed]
        if departed and self._gone:
            self._gone = await in_thread(without, self._gone, departed)
        for each in asked:
            each.departed.clear()
        return await in_thread(combined, (*(each.readings for each in asked), self._gone))

    async def scrape(self) -> Sequence[bytes]:
        """Return the metrics in Prometheus' text format, in pieces, with the resource use of all processes.

        Concurrent calls share one result.
        """
        return await self._scrapes.get()

    async def _write(self) -> Sequence[bytes]:
        readings = await self.gather()
        return await in_thread(lambda: tuple(self._exposition.pieces(readings)))

    async def _keep(self, number: int) -> None:
        """Keep the process with this number running."""
        failures = 0
        while True:
            began = time.monotonic()
            code, was_ready = await self._run_one(number)
            if self._stopping.is_set():
                if code not in _ORDERLY:
                    raise HostError(f"process {number} of {self._count} ended with {code}; see the log")
                return
            if not was_ready and not failures:
                raise HostError(f"process {number} of {self._count} ended with {code} before it was ready; see the log")
            failures = 1 if time.monotonic() - began > _GOOD_SECONDS else failures + 1
            pause = _PAUSES[min(failures, len(_PAUSES)) - 1]
            log.error(
                "a process ended and is restarted",
                extra={"fields": {"process": number, "code": code, "seconds": pause}},
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return

    async def _run_one(self, number: int) -> tuple[int, bool]:
        """Run a process until it ends; return its exit code and whether it was ever ready."""
        ours, theirs = socket.socketpair()
        try:
            channel = await Channel.open(ours)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        try:
            # a session of its own: the parent forwards an interrupt from the terminal
            work = await asyncio.create_subprocess_exec(
                *self._command,
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException as error:
            await channel.close()
            if isinstance(error, OSError):
                reason = (error.strerror or str(error)).lower()
                raise HostError(f"a process cannot be started: {reason}") from None
            raise
        finally:
            theirs.close()
        # no await from here to the `try` that ends the process
        process = _Process(number, work, channel)
        self._running[number] = process
        self._sent.pop(number, None)
        process.channel.send({**self._errand, "number": number, "of": self._count})
        hearing = asyncio.create_task(self._hear(process))
        try:
            if self._stopping.is_set():
                _signal(process, kills=False)
            code = await work.wait()
        finally:
            _signal(process, kills=True)  # no child outlives a cancelled parent
            await work.wait()
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            self._running.pop(number, None)
            self._changed.set()
            self._gone = combined((self._gone, (each for each in process.readings if each.kind != "gauge")))
            await process.channel.close()
        return code, process.was_ready

    async def _hear(self, process: _Process) -> None:
        while (message := await process.channel.receive()) is not None:
            before = process.problem
            process.take_message(message)
            if process.problem != before:
                self._changed.set()

    async def _monitor(self) -> None:
        """Send each process the health of the others whenever it changes, and kill processes that hang."""
        while True:
            reasons = {number: self._unready_reason(number) for number in range(1, self._count + 1)}
            for number, process in tuple(self._running.items()):
                others = next((text for other, text in reasons.items() if text and other != number), "")
                if others != self._sent.get(number):
                    self._sent[number] = others
                    process.channel.send({"others": others})
                if process.is_hanging():
                    log.error("a process hangs and is killed", extra={"fields": {"process": number}})
                    process.heard = time.monotonic()
                    _signal(process, kills=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
            self._changed.clear()

    def _unready_reason(self, number: int) -> str:
        process = self._running.get(number)
        text = "is not running" if process is None else process.unready_reason()
        return text and f"process {number} of {self._count}: {text}"

    def _pids(self) -> list[int]:
        return [each.work.pid for each in self._running.values()]


def _signal(process: _Process, *, kills: bool) -> None:
    with suppress(ProcessLookupError):
        (process.work.kill if kills else process.work.terminate)()
