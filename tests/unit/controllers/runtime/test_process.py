"""A controller process: its servers outlive the work, and signals end both."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager
from types import TracebackType

import pytest

from pyverno.controllers.runtime.process import run_process


class RecordingService(AbstractAsyncContextManager[None]):
    """A service that records its start and its end."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    async def __aenter__(self) -> None:
        self._told.append("served")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told.append("no longer served")


def test_a_signal_ends_the_work_and_then_what_is_served() -> None:
    """The work receives the stop event and may take its time."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        told.append("begun")
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        told.append("ended")

    run_process(work, [RecordingService(told)])
    assert ["served", "begun", "ended", "no longer served"] == told


def test_a_second_signal_ends_it_at_once() -> None:
    """Even work that ignores the event ends; servers still shut down in order."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        run_process(work, [RecordingService(told)])
    assert ["served", "no longer served"] == told


def test_what_the_work_raises_is_raised() -> None:
    """The error is raised after the servers have ended."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_process(work, [RecordingService(told)])
    assert ["served", "no longer served"] == told
