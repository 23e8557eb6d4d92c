"""The child side of a replica with several processes: reports health and metrics to the parent process.

Each child sends its health every second and its metrics on request, and receives the health of the other children.
When the parent is gone, the child shuts down in order.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pyverno.controllers.runtime.processgroup.channel import Channel
from pyverno.telemetry.metrics import Metrics
from pyverno.telemetry.snapshots import packed
from pyverno.threads import in_thread

__all__ = ["Peers"]

_BEAT_SECONDS: Final = 1.0


class Peers:
    """The other processes of this replica, as reported by the parent process."""

    def __init__(self, end: socket.socket, number: int) -> None:
        """Take our end of the connection to the parent process, and the number of this process."""
        self.number = number
        self._end = end
        self._others = "the health of the other processes is not known yet"

    def problem(self) -> str:
        """Return why one of the other processes is not ready, or the empty text."""
        return self._others

    async def follow(self, own: Callable[[], str], metrics: Metrics, stop: asyncio.Event) -> None:
        """Exchange messages with the parent until cancelled; set `stop` when the parent has ended."""
        channel = await Channel.open(self._end)
        beating = asyncio.create_task(_beat(channel, own))
        try:
            while (message := await channel.receive()) is not None:
                if "others" in message:
                    self._others = str(message["others"])
                if message.get("ask") == "metrics":
                    await _send_metrics(channel, metrics)
            stop.set()
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            await channel.close()


async def _send_metrics(channel: Channel, metrics: Metrics) -> None:
    """Send the metrics, encoded in another thread so that requests do not wait for thousands of series."""
    readings = await metrics.gather()
    departed, metrics.instruments.departed = metrics.instruments.departed, []
    message = {"readings": readings, "departed": departed}
    channel.send_encoded(await in_thread(lambda: Channel.encode({**message, "readings": packed(readings)})))


async def _beat(channel: Channel, own: Callable[[], str]) -> None:
    while True:
        channel.send({"problem": own()})
        await asyncio.sleep(_BEAT_SECONDS)
