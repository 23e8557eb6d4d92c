"""Messages between two processes of a replica: JSON objects, one a line, over a socket that only these two have.

This module must never know what a message means.
"""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any, Final, Self

__all__ = ["Channel"]

_LONGEST: Final = 256 * 1024 * 1024
"""Bytes of one message: the metrics of a process, 20,000 series with their labels and buckets, need a tenth of it."""


class Channel:
    """One end of the connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take both directions; `open` makes them."""
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, end: socket.socket) -> Self:
        """Return the channel of a connected socket, which belongs to the channel from now on."""
        return cls(*await asyncio.open_connection(sock=end, limit=_LONGEST))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message, in pieces and later if need be; where nobody is left to hear it, it is lost."""
        self.send_written(self.written(message))

    @staticmethod
    def written(message: dict[str, Any]) -> bytes:
        """Return a message as it is sent; a long one is better written by another thread."""
        # not orjson: the names of a request may hold half of a character
        return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"

    def send_written(self, message: bytes) -> None:
        """Send what `written` returned."""
        if not self._writer.is_closing():
            self._writer.write(message)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, None when the other process is gone or says what is no message."""
        with suppress(OSError, ValueError):
            line = await self._reader.readline()
            if line.endswith(b"\n"):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message
        return None

    async def close(self) -> None:
        """End the connection."""
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
