"""The port of a controller's probes: `/health/liveness` and `/health/readiness` over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from pyverno.controllers.runtime.process import serve_http

__all__ = ["HealthPort"]


class HealthPort:
    """Serves the probes; an async context manager. Port 0 means any free port."""

    def __init__(self, problem: Callable[[], str], address: str = "", port: int = 9080) -> None:
        """Take what returns why the controller is not ready ("" = it is), and the address to listen on."""
        self._problem = problem
        self._address = address
        self._runner: web.ServerRunner | None = None
        self.port = port

    async def __aenter__(self) -> Self:
        self._runner = await serve_http(self._handle, self._address, self.port)
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/health/liveness":
            return web.Response(text="ok\n")
        if request.path != "/health/readiness":
            return web.Response(status=404, text="probes are at /health/liveness and /health/readiness\n")
        problem = self._problem()
        return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")
