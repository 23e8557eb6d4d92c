"""A channel between two processes of a replica: JSON messages, one per line, over a private socket pair."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any, Final, Self

# trust rows: own-process

__all__ = ["Channel"]

_LONGEST: Final = 256 * 1024 * 1024
"""Bytes of one message. The metrics of a process (20,000 series with labels and buckets) need a tenth of it."""


class Channel:
    """One end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take both directions; `open` creates them."""
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Return a channel over a connected socket; the channel takes ownership of the socket."""
        return cls(*await asyncio.open_connection(sock=end, limit=_LONGEST))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message without waiting; it is lost if the other process has ended."""
        self.send_encoded(self.encode(message))

    @staticmethod
    def encode(message: dict[str, Any]) -> bytes:
        """Return a message in its wire form; encode long messages in another thread."""
        # not orjson: the names of a request may hold unpaired surrogates
        return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"

    def send_encoded(self, message: bytes) -> None:
        """Send a message that `encode` returned."""
        if not self._writer.is_closing():
            self._writer.write(message)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None when the other process has ended or sends a malformed one."""
        with suppress(OSError, ValueError):
            line = await self._reader.readline()
            if line.endswith(b"\n"):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message
        return None

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
