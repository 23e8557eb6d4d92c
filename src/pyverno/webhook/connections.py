"""The HTTP server below the webhook: no connection may be held without a question being asked on it.

A caller that sends a request drop by drop, or none at all, is sent away after a while, and so is one too many, and who
begins with TLS and does not go on. This module must never look at a request.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

__all__ = ["PatientServer", "PatientSite"]


class PatientServer(web.Server):
    """Waits so many seconds for the first whole head of a request, and holds so many connections at most."""

    def __init__(self, *arguments: Any, head_seconds: float, most_connections: int, **options: Any) -> None:
        """Take the limits; everything else is as for `aiohttp.web.Server`."""
        super().__init__(*arguments, **options)
        self._head_seconds = head_seconds
        self._most_connections = most_connections
        self._silent: set[object] = set()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Begin to wait for a question, or send away one too many."""
        super().connection_made(handler, transport)
        if len(self.connections) > self._most_connections:
            transport.abort()
            return
        self._silent.add(handler)
        asyncio.get_running_loop().call_later(self._head_seconds, self._look_at, handler, transport)

    def note(self, request: web.BaseRequest) -> None:
        """Take note that a request has come whole as far as its head."""
        self._silent.discard(request.protocol)

    def _look_at(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        if handler in self._silent:
            self._silent.discard(handler)
            transport.abort()


class PatientSite(web.TCPSite):
    """A place to listen that waits so many seconds for the handshakes of TLS, those of the end included."""

    __slots__ = ("_handshake_seconds",)

    def __init__(self, *arguments: Any, handshake_seconds: float, **options: Any) -> None:
        """Take the limit; everything else is as for `aiohttp.web.TCPSite`."""
        super().__init__(*arguments, **options)
        self._handshake_seconds = handshake_seconds

    async def start(self) -> None:
        """Listen; raises OSError where nobody can."""
        # as in aiohttp, which has no argument for the limits: the default is a minute
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None  # noqa: S101 - the line above sees to it
        limit = self._handshake_seconds if self._ssl_context else None
        self._server = await asyncio.get_running_loop().create_server(
            server,
            self._host,
            self._port,
            ssl=self._ssl_context,
            backlog=self._backlog,
            reuse_address=self._reuse_address,
            reuse_port=self._reuse_port,
            ssl_handshake_timeout=limit,
            ssl_shutdown_timeout=limit,
        )
