"""The port where metrics are read: plain HTTP, or HTTPS."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Protocol, Self

from aiohttp import web

from pyverno.controllers.runtime.process import serve_http

__all__ = ["MetricsPort", "TlsSource"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATH = "/metrics"


class TlsSource(Protocol):
    """Opens the TLS context of a port; its certificates are followed and renewed until the context is closed."""

    def open(self) -> AbstractAsyncContextManager[ssl.SSLContext]:
        """Return the context to listen with."""
        ...


class MetricsPort:
    """Serves what `expose` returns at the path `/metrics`; an async context manager. Port 0 means any free port."""

    def __init__(
        self,
        expose: Callable[[], Awaitable[Sequence[bytes]]],
        address: str = "",
        port: int = 8000,
        tls: TlsSource | None = None,
    ) -> None:
        """Take what returns the text in pieces, the address to listen at, and the source of certificates for HTTPS."""
        self._expose = expose
        self._address = address
        self._tls = tls
        self._stack = AsyncExitStack()
        self.port = port

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            options = {} if self._tls is None else {"ssl_context": await stack.enter_async_context(self._tls.open())}
            runner = await serve_http(self._handle, self._address, self.port, **options)
            stack.push_async_callback(runner.cleanup)
            self.port = runner.addresses[0][1]
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != _PATH:
            return web.Response(status=404, text=f"metrics are at {_PATH}\n")
        pieces = await self._expose()
        response = web.StreamResponse(headers={"Content-Type": _CONTENT_TYPE})
        response.content_length = sum(map(len, pieces))
        await response.prepare(request)
        for piece in pieces:  # never the whole text once more
            await response.write(piece)
        await response.write_eof()
        return response
