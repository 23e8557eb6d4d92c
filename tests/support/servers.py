"""HTTP servers in the event loop of a test, which leave no connection behind."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

__all__ = ["listening"]

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Server(web.Server):
    """Knows its connections until they are lost: one that only closes waits for its client, over TLS for 30 s."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._transports[handler] = transport

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._transports.pop(handler, None)
        super().connection_lost(handler, exc)

    def drop(self) -> None:
        """Close all connections at once."""
        for transport in tuple(self._transports.values()):
            transport.abort()


@asynccontextmanager
async def listening(answer: Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve on 127.0.0.1, over TLS with a context; yield the port."""
    server = _Server(answer)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        # before aiohttp closes them: asyncio cannot abort a TLS connection that was closed twice
        server.drop()
        await runner.cleanup()
        server.drop()
        await asyncio.sleep(0)
