"""The processes of one replica that share a port: started, watched, started again, and ended together.

Each of them is a whole admission controller with watches of its own; the system gives each connection to one of them
(SO_REUSEPORT). This one answers no request: it hears every second how they are, ends one that hangs, tells each of the
others, and adds up their metrics. This module must never know what a process answers.
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

from pyverno.controllers.runtime.channel import Channel
from pyverno.errors import HostError
from pyverno.telemetry.exposition import Exposition
from pyverno.telemetry.instruments import Departed, Reading
from pyverno.telemetry.sharing import Shared
from pyverno.telemetry.snapshots import combined, unpacked, without

__all__ = ["Processes", "can_share_ports"]

_FIRST_WORD_SECONDS: Final = 120.0
"""How long a process may take to start until it says anything."""
_LATE_SECONDS: Final = 10.0
"""After how long without a word a process counts as not fit to answer."""
_HANGING_SECONDS: Final = 30.0
"""After how long without a word it is killed and another one started."""
_LOOK_SECONDS: Final = 0.5
_METRICS_SECONDS: Final = 5.0
_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""How long a process is waited with that ended again and again."""
_GOOD_SECONDS: Final = 60.0
"""How long a process lives that is not counted as one of these."""

_ORDERLY: Final = (0, -signal.SIGTERM)
"""Codes of processes that ended as they were told, the second of one that was only starting."""

log = logging.getLogger("pyverno.admission")


def can_share_ports() -> bool:
    """Tell whether several processes can listen at one port here."""
    return hasattr(socket, "SO_REUSEPORT")


class _Process:
    """One process that runs, and the last that was heard of it."""

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
        self.problem = "has not said yet how it is"
        self.heard = time.monotonic()
        self.spoke = self.was_ready = False
        self.readings: list[Reading] = []
        self.departed: list[Departed] = []
        self.answered = asyncio.Event()

    def hear(self, message: dict[str, Any]) -> None:
        self.heard, self.spoke = time.monotonic(), True
        if "problem" in message:
            self.problem = str(message["problem"])
            self.was_ready |= not self.problem
        if "readings" in message:
            self.readings = unpacked(message["readings"])
            self.departed += [tuple((label, value) for label, value in each) for each in message.get("departed", ())]
            self.answered.set()

    def complaint(self) -> str:
        """Return why it is not fit to answer, or the empty text."""
        silent = time.monotonic() - self.heard
        if self.spoke and silent > _LATE_SECONDS:
            return f"has said nothing for {silent:.0f} seconds"
        return self.problem

    def is_hanging(self) -> bool:
        """Tell whether nothing good is to be expected of it any more."""
        return time.monotonic() - self.heard > (_HANGING_SECONDS if self.spoke else _FIRST_WORD_SECONDS)


class Processes:
    """Runs `count` processes of a command, which finds in its last argument the number of an open socket to us.

    The first message there is `errand` with `number` (from 1) and `of` (how many there are).
    """

    def __init__(self, command: Sequence[str], errand: dict[str, Any], count: int) -> None:
        """Take what is run, what it is told, and how often it is run at once."""
        self.begun = time.time_ns()
        """Since when is counted, in nanoseconds since 1970."""
        self._command = tuple(command)
        self._errand = errand
        self._count = count
        self._running: dict[int, _Process] = {}
        self._told: dict[int, str] = {}
        self._gone: list[Reading] = []
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._exposition = Exposition(self._pids)
        self._scrapes = Shared(self._write)

    async def run(self, stop: asyncio.Event) -> None:
        """Keep all of them running until `stop` is set, then end them in order.

        Raises HostError when one cannot be started at all, or does not end in order.
        """
        seats = [asyncio.create_task(self._keep(number)) for number in range(1, self._count + 1)]
        waiting, looking = asyncio.create_task(stop.wait()), asyncio.create_task(self._look())
        try:
            await asyncio.wait((*seats, waiting, looking), return_when=asyncio.FIRST_COMPLETED)
            seats.sort(key=lambda seat: not seat.done())  # the error to raise is that of the one that ended by itself
            self._stopping.set()
            for each in self._running.values():
                _signal(each, kills=False)
            ends = await asyncio.gather(*seats, return_exceptions=True)
        finally:
            for task in (*seats, waiting, looking):
                task.cancel()
            await asyncio.gather(*seats, waiting, looking, return_exceptions=True)
        for end in ends:
            if isinstance(end, BaseException):
                raise end
        if not looking.cancelled():
            looking.result()

    async def gather(self) -> list[Reading]:
        """Return what all of them counted, those that are gone as well; who does not answer has what was last known."""
        asked = list(self._running.values())
        for each in asked:
            each.answered.clear()
            each.channel.send({"ask": "metrics"})
        with suppress(TimeoutError):
            async with asyncio.timeout(_METRICS_SECONDS):
                await asyncio.gather(*(each.answered.wait() for each in asked))
        departed = [gone for each in asked for gone in each.departed]
        if departed and self._gone:
            self._gone = await asyncio.to_thread(without, self._gone, departed)
        for each in asked:
            each.departed.clear()
        return await asyncio.to_thread(combined, (*(each.readings for each in asked), self._gone))

    async def scrape(self) -> Sequence[bytes]:
        """Return the same in Prometheus' text format, in pieces, with what the processes together use.

        It is made once for all who ask at the same time.
        """
        return await self._scrapes.get()

    async def _write(self) -> Sequence[bytes]:
        readings = await self.gather()
        return await asyncio.to_thread(lambda: tuple(self._exposition.pieces(readings)))

    async def _keep(self, number: int) -> None:
        """See to it that one process of this number runs."""
        failures = 0
        while True:
            began = time.monotonic()
            code, was_ready = await self._run_one(number)
            if self._stopping.is_set():
                if code not in _ORDERLY:
                    raise HostError(f"process {number} of {self._count} ended with {code}; the log says why")
                return
            if not was_ready and not failures:
                raise HostError(
                    f"process {number} of {self._count} ended with {code} before it was ready; the log says why"
                )
            failures = 1 if time.monotonic() - began > _GOOD_SECONDS else failures + 1
            pause = _PAUSES[min(failures, len(_PAUSES)) - 1]
            log.error(
                "a process ended and is started again",
                extra={"fields": {"process": number, "code": code, "seconds": pause}},
            )
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return

    async def _run_one(self, number: int) -> tuple[int, bool]:
        """Run a process to its end; returns its code, and whether it was ready at any time."""
        ours, theirs = socket.socketpair()
        try:
            channel = await Channel.open(ours)
        except BaseException:
            ours.close()
            theirs.close()
            raise
        try:
            # a session of its own: an interrupt at the terminal is ours to hand on
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
        # nothing is waited for from here to the `try` that ends the process
        process = _Process(number, work, channel)
        self._running[number] = process
        self._told.pop(number, None)
        process.channel.send({**self._errand, "number": number, "of": self._count})
        hearing = asyncio.create_task(self._hear(process))
        try:
            if self._stopping.is_set():
                _signal(process, kills=False)
            code = await work.wait()
        finally:
            _signal(process, kills=True)  # nothing of us stays when we are told to go at once
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
            process.hear(message)
            if process.problem != before:
                self._changed.set()

    async def _look(self) -> None:
        """Tell each how the others are, at once when that changes, and end who hangs."""
        while True:
            complaints = {number: self._complaint(number) for number in range(1, self._count + 1)}
            for number, process in tuple(self._running.items()):
                others = next((text for other, text in complaints.items() if text and other != number), "")
                if others != self._told.get(number):
                    self._told[number] = others
                    process.channel.send({"others": others})
                if process.is_hanging():
                    log.error("a process hangs and is killed", extra={"fields": {"process": number}})
                    process.heard = time.monotonic()
                    _signal(process, kills=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
            self._changed.clear()

    def _complaint(self, number: int) -> str:
        process = self._running.get(number)
        text = "is not there" if process is None else process.complaint()
        return text and f"process {number} of {self._count}: {text}"

    def _pids(self) -> list[int]:
        return [each.work.pid for each in self._running.values()]


def _signal(process: _Process, *, kills: bool) -> None:
    with suppress(ProcessLookupError):
        (process.work.kill if kills else process.work.terminate)()
