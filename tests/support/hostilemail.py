"""Mail servers that answer as no server should, at each step of a conversation."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["MAIL_FAULTS", "STEPS", "HostileMail", "hostile_mail"]

STEPS: Final = ("greeting", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "message", "QUIT")
_USUAL: Final = {
    "greeting": b"220 mail\r\n",
    "EHLO": b"250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n",
    "STARTTLS": b"220 go\r\n",
    "AUTH": b"235 ok\r\n",
    "DATA": b"354 go\r\n",
    "QUIT": b"221 bye\r\n",
}
_MOST_SENT = 64 * 1024 * 1024

Pieces = Callable[[], Iterator[bytes]]
"""The pieces of an answer; an empty piece is silence until the client goes, and one of a byte comes late."""


def _once(answer: bytes) -> Pieces:
    return lambda: iter([answer])


MAIL_FAULTS: Final[dict[str, Pieces]] = {
    "a line without end": lambda: itertools.repeat(b"2" * 65_536),
    "lines without end": lambda: itertools.repeat(b"250-more\r\n" * 6000),
    "announcements without end": lambda: itertools.repeat(b"250 ok\r\n" * 6000),
    "a line byte by byte": lambda: itertools.repeat(b"2"),
    "silence": _once(b""),
    "half a line": lambda: iter([b"250-", b""]),
    "nothing": lambda: iter([]),
    "another protocol": _once(b"HTTP/1.1 200 OK\r\n\r\n"),
    "bytes that are no text": _once(b"\xff\xfe\x00\r\n"),
    "a challenge that is none": _once(b"334 !!!\xff\r\n"),
    "later": _once(b"451 later\r\n"),
    "never": _once(b"552 p4ss-is-here\r\n"),
    "no access": _once(b"535 p4ss-is-here\r\n"),
    "a number that is none": _once(b"999 ok\r\n"),
}


@dataclass
class HostileMail:
    """A server that is listening: its port, the commands it got, and the most bytes that one connection took."""

    port: int = 0
    taken: int = 0
    commands: list[bytes] = field(default_factory=list)
    messages: int = 0
    _open: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pieces: Iterator[bytes]) -> bool:
        """Send the pieces; return whether the conversation goes on."""
        sent = 0
        for piece in pieces:
            if not piece:
                await asyncio.sleep(3600)
            if len(piece) == 1:
                await asyncio.sleep(0.02)
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
            self.taken = max(self.taken, sent)
            await asyncio.sleep(0)
            if sent > _MOST_SENT or reader.exception() is not None or reader.at_eof():
                return False
        return sent > 0


@asynccontextmanager
async def hostile_mail(
    step: str, fault: Pieces, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[HostileMail]:
    """Run a server on this machine that fails at one step; with `tls` it is encrypted from the beginning."""
    server = HostileMail()

    def pieces(name: str) -> Iterator[bytes]:
        return fault() if name == step else iter([_USUAL.get(name, b"250 ok\r\n")])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: Any = asyncio.current_task()
        server._open[task] = writer
        if not listening.is_serving():  # it was accepted just before
            writer.transport.abort()
            return
        with suppress(OSError, asyncio.IncompleteReadError, ValueError, asyncio.CancelledError):
            goes_on = await server.answer(reader, writer, pieces("greeting"))
            while goes_on and (line := await reader.readline()):
                server.commands.append(line)
                name = line.split()[0].decode("ascii", "replace").upper() if line.split() else ""
                goes_on = await server.answer(reader, writer, pieces(name))
                if name == "DATA" and goes_on and step != "DATA":
                    await reader.readuntil(b"\r\n.\r\n")
                    server.messages += 1
                    goes_on = await server.answer(reader, writer, pieces("message"))
        writer.close()

    listening = await asyncio.start_server(talk, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task, writer in server._open.items():
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*server._open, return_exceptions=True)
        await asyncio.sleep(0.01)  # TLS closes its socket later
