"""The port where metrics are read: plain HTTP, or HTTPS with certificates in two Secrets of their own.

This module must never know what is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.controllers.certificates.secrets import CertificateSettings
from pyverno.controllers.certificates.serving import ServingCertificates
from pyverno.controllers.runtime.process import serve_http
from pyverno.errors import HostError
from pyverno.value import dataclass

__all__ = ["MetricsPort", "MetricsTls"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class MetricsTls:
    """Where the certificates of the metrics are kept: the cluster, and the names of the Secrets."""

    access: Access
    certificates: CertificateSettings


class MetricsPort:
    """Serves what `expose` makes, at the path `/metrics`; an async context manager. Port 0 lets the system choose."""

    def __init__(
        self,
        expose: Callable[[], Awaitable[Sequence[bytes]]],
        address: str = "",
        port: int = 8000,
        tls: MetricsTls | None = None,
    ) -> None:
        """Take what makes the text, in pieces, where to listen, and the certificates for HTTPS."""
        self._expose = expose
        self._address = address
        self._tls = tls
        self._stack = AsyncExitStack()
        self.port = port

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            options = {} if self._tls is None else {"ssl_context": await _context(self._tls, stack)}
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


async def _context(tls: MetricsTls, stack: AsyncExitStack) -> object:
    """Return what to listen with; the certificates are followed and renewed until the stack is closed."""
    client = Client(tls.access)
    stack.push_async_callback(client.close)
    certificates = ServingCertificates(client, tls.certificates, _tell_nobody)
    await certificates.start()
    if certificates.tls is None:
        raise HostError("there is no certificate for the metrics")
    tasks = [asyncio.create_task(certificates.follow()), asyncio.create_task(certificates.lead())]
    stack.push_async_callback(_cancel, tasks)
    return certificates.tls.listening


async def _tell_nobody() -> None:
    """Who reads metrics knows the authority from its Secret."""


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
