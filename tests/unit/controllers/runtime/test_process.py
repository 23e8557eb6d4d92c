"""A controller as a process: what is served lasts longer than the work, and signals end both."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager
from types import TracebackType

import pytest

from pyverno.controllers.runtime.process import run_process


class Noted(AbstractAsyncContextManager[None]):
    """A service that notes when it begins and ends."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    async def __aenter__(self) -> None:
        self._told.append("served")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told.append("no longer served")


def test_a_signal_ends_the_work_and_then_what_is_served() -> None:
    """The work is told by its event, and has the time that it takes."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        told.append("begun")
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        told.append("ended")

    run_process(work, [Noted(told)])
    assert ["served", "begun", "ended", "no longer served"] == told


def test_a_second_signal_ends_it_at_once() -> None:
    """Also work that does not listen; what is served ends in order all the same."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        run_process(work, [Noted(told)])
    assert ["served", "no longer served"] == told


def test_what_the_work_raises_is_raised() -> None:
    """After what is served has ended."""
    told: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_process(work, [Noted(told)])
    assert ["served", "no longer served"] == told
