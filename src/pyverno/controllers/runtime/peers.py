"""What a process of a replica hears of the others that share its port, and what it tells of itself.

Each tells the process that started it every second whether it is fit to answer, and its metrics when it is asked; when
that process is gone it ends in order. This module must never start a process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pyverno.controllers.runtime.channel import Channel
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.snapshots import packed

__all__ = ["Peers"]

_BEAT_SECONDS: Final = 1.0


class Peers:
    """The other processes of this replica, as the one that started all of them tells."""

    def __init__(self, end: socket.socket, number: int) -> None:
        """Take our end of the connection to the process that started this one, and which of them this one is."""
        self.number = number
        self._end = end
        self._others = "nothing is known yet of the other processes"

    def problem(self) -> str:
        """Return why one of the others cannot answer, or the empty text."""
        return self._others

    async def follow(self, own: Callable[[], str], metrics: Metrics, stop: asyncio.Event) -> None:
        """Tell and hear until this is cancelled; sets `stop` when nobody is there any more to hear."""
        channel = await Channel.open(self._end)
        beating = asyncio.create_task(_beat(channel, own))
        try:
            while (message := await channel.receive()) is not None:
                if "others" in message:
                    self._others = str(message["others"])
                if message.get("ask") == "metrics":
                    await _tell(channel, metrics)
            stop.set()
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            await channel.close()


async def _tell(channel: Channel, metrics: Metrics) -> None:
    """Send what was counted, written by another thread: requests do not wait for thousands of series."""
    readings = await metrics.gather()
    departed, metrics.instruments.departed = metrics.instruments.departed, []
    message = {"readings": readings, "departed": departed}
    channel.send_written(await asyncio.to_thread(lambda: Channel.written({**message, "readings": packed(readings)})))


async def _beat(channel: Channel, own: Callable[[], str]) -> None:
    while True:
        channel.send({"problem": own()})
        await asyncio.sleep(_BEAT_SECONDS)
