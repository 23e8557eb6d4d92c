"""Connections for writes whose answers are short: HTTP/1.1, one request at a time on each, kept open between requests.

A write costs a third of what it costs with the client of aiohttp, whose parser reads the answers here as well. No
redirect is followed, nothing is inflated, and bytes that are no answer end the connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser, RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader

__all__ = ["Channels", "Reply", "ReplyReader", "request_head"]

_IDLE_SECONDS: Final = 15.0
_SWITCHING: Final = 101
_FINAL: Final = 200
_BREAKS: Final = frozenset("\r\n\0")
_PORTS: Final = {"http": 80, "https": 443}


def request_head(method: str, server: str, path: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """Return the head of a request without its end; raises OSError for a header with a line break.

    >>> request_head("POST", "https://api:6443", "/api/v1/pods", [("Accept", "text/plain")])
    b'POST /api/v1/pods HTTP/1.1\\r\\nHost: api:6443\\r\\nAccept: text/plain\\r\\n'
    """
    lines = [_request_line(method, server, path)]
    for name, text in fields:
        if not _BREAKS.isdisjoint(name + text):
            raise OSError(f"the header {name!r} has a line break")
        lines.append(f"{name}: {text}\r\n")
    return "".join(lines).encode()


@lru_cache(maxsize=256)
def _request_line(method: str, server: str, path: str) -> str:
    """Return the first line of a request and its Host header."""
    base = urlsplit(server)
    target = quote(base.path + path, safe="/:@!$&'()*+,;=~%")
    return f"{method} {target} HTTP/1.1\r\nHost: {base.netloc.rpartition('@')[2]}\r\n"


class Reply(NamedTuple):
    """A complete answer; names of header fields are in lower case."""

    status: int
    fields: Mapping[str, str]
    body: bytes


class ReplyReader:
    """Reads one answer from the pieces of a connection with the parser of aiohttp.

    It raises ConnectionError for bytes that are not an answer, and for more of them than allowed.
    """

    def __init__(self, protocol: BaseProtocol, max_bytes: int) -> None:
        """Take the connection, and the most bytes that head and body may have."""
        self.is_last = False
        """Whether the connection cannot be used again."""
        loop = asyncio.get_running_loop()
        # the parser keeps the whole body, which is never larger than its limit: reading is not paused
        self._parser = HttpResponseParser(protocol, loop, max_bytes, read_until_eof=True, auto_decompress=False)
        self._left = max_bytes
        self._head: RawResponseMessage | None = None
        self._body: StreamReader | None = None

    def feed(self, data: bytes) -> Reply | None:
        """Take the next bytes; return the answer once it is complete."""
        self._left -= len(data)
        if self._left < 0:
            raise ConnectionError("the answer is too large")
        try:
            messages, _, rest = self._parser.feed_data(data)
        except HttpProcessingError as error:
            raise ConnectionError(f"the answer is not HTTP/1.1: {error.message.splitlines()[0]}") from None
        for head, body in messages:
            if head.code == _SWITCHING:
                raise ConnectionError("the server changes the protocol")
            if self._head is not None:
                raise ConnectionError("there are more answers than requests")
            if head.code >= _FINAL:
                self._head, self._body = head, body
                self.is_last = head.should_close
        self.is_last = self.is_last or bool(rest)
        return self._reply()

    def end(self) -> Reply | None:
        """Return the answer that the end of the connection completes; None where it was cut off."""
        try:
            self._parser.feed_eof()
        except HttpProcessingError:
            return None
        return self._reply()

    def _reply(self) -> Reply | None:
        head, body = self._head, self._body
        if head is None or body is None or not body.is_eof():
            return None
        if (error := body.exception()) is not None:
            raise ConnectionError("the body of the answer is broken") from error
        return Reply(head.code, {name.lower(): text for name, text in head.headers.items()}, body.read_nowait(-1))


class _Channel(BaseProtocol):
    """One connection."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.used = time.monotonic()
        self.is_open = True
        self._reader: ReplyReader | None = None
        self._waiting: asyncio.Future[Reply] | None = None

    async def exchange(self, message: bytes, max_bytes: int) -> Reply:
        """Send a request and return the answer; whatever goes wrong closes the connection."""
        if self.transport is None or not self.is_open:
            raise ConnectionError("the connection is closed")
        self._reader = ReplyReader(self, max_bytes)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            self.transport.write(message)
            reply = await self._waiting
        except BaseException:
            self.abort()
            raise
        if self._reader.is_last:
            self.abort()
        self._reader = self._waiting = None
        self.used = time.monotonic()
        return reply

    def abort(self) -> None:
        """Close the connection at once."""
        self.is_open = False
        if self.transport is not None:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on; bytes that answer nothing close the connection."""
        if self._reader is None or self._waiting is None or self._waiting.done():
            self.abort()
            return
        try:
            self._settle(self._reader.feed(data))
        except ConnectionError as error:
            self._fail(error)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail the request that still waits, unless the end completes its answer."""
        self.is_open = False
        super().connection_lost(exc)
        if self._reader is not None and exc is None:
            try:
                self._settle(self._reader.end())
            except ConnectionError as error:
                self._fail(error)
        self._fail(exc or ConnectionError("the server closed the connection before it answered"))

    def _settle(self, reply: Reply | None) -> None:
        if reply is not None and self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(reply)

    def _fail(self, error: BaseException) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


class Channels:
    """The open connections to one server: as many as there are requests at the same time."""

    def __init__(self, server: str, server_name: str = "", *, prepare: Callable[[socket.socket], None]) -> None:
        """Take the address, the name that the server's certificate is for, and what sets a socket's options."""
        found = urlsplit(server)
        self._host = found.hostname or ""
        self._port = found.port or _PORTS[found.scheme]
        self._server_name = server_name or self._host
        self._prepare = prepare
        self._context: ssl.SSLContext | None = None
        self._idle: list[_Channel] = []

    async def exchange(self, message: bytes, context: ssl.SSLContext | None, max_bytes: int) -> Reply:
        """Send a complete request and return its answer, over TLS with a context; raises OSError without one."""
        if context is not self._context:
            self.close()
            self._context = context
        channel = self._take() or await self._connect(context)
        reply = await channel.exchange(message, max_bytes)
        if channel.is_open:
            if context is self._context:
                self._idle.append(channel)
            else:
                channel.abort()
        return reply

    def close(self) -> None:
        """Close what is idle; a connection in use closes with its request."""
        self._context = None
        while self._idle:
            self._idle.pop().abort()

    def _take(self) -> _Channel | None:
        oldest = time.monotonic() - _IDLE_SECONDS
        while self._idle:
            channel = self._idle.pop()
            if channel.is_open and channel.used >= oldest:
                return channel
            channel.abort()
        return None

    async def _connect(self, context: ssl.SSLContext | None) -> _Channel:
        name = None if context is None else self._server_name
        loop = asyncio.get_running_loop()
        transport, channel = await loop.create_connection(
            _Channel, self._host, self._port, ssl=context, server_hostname=name
        )
        found = transport.get_extra_info("socket")
        if found is not None:
            self._prepare(found)
        return channel
