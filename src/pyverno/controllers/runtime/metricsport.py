"""The port where metrics are read: plain HTTP, or HTTPS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Protocol, Self

from aiohttp import web

from pyverno.controllers.runtime.process import serve_http

# trust rows: probe

__all__ = ["MetricsPort", "TlsSource"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATH = "/metrics"
_SECONDS = 60.0
_MOST_TEXTS = 4
"""Responses from which on further ones repeat the latest text, until all have been read."""


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
        *,
        seconds: float = _SECONDS,
    ) -> None:
        """Take what returns the text in pieces, the address to listen at, and the source of certificates for HTTPS.

        A client has `seconds` to read everything.
        """
        self._expose = expose
        self._seconds = seconds
        self._sending = 0
        self._latest: Sequence[bytes] = ()
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
        self._sending += 1
        response = web.StreamResponse(headers={"Content-Type": _CONTENT_TYPE})
        try:
            pieces = await self._read()
            response.content_length = sum(map(len, pieces))
            async with asyncio.timeout(self._seconds):
                await response.prepare(request)
                for piece in pieces:  # never the whole text once more
                    await response.write(piece)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._sending -= 1
            if not self._sending:
                self._latest = ()
        return response

    async def _read(self) -> Sequence[bytes]:
        """Return the text; clients that read slowly hold few of them in memory, however many they are."""
        if self._sending <= _MOST_TEXTS or not self._latest:
            self._latest = await self._expose()
        return self._latest
