"""The port of a controller's probes: `/health/liveness` and `/health/readiness` over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from pyverno.controllers.runtime.process import HttpPort

# trust rows: probe

__all__ = ["HealthPort"]


class HealthPort(HttpPort):
    """Serves the probes; an async context manager. Port 0 means any free port."""

    def __init__(self, problem: Callable[[], str], address: str = "", port: int = 9080) -> None:
        """Take a function that returns why the controller is not ready ("" = it is), and the address to listen on."""
        super().__init__(address, port)
        self._problem = problem

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/health/liveness":
            return web.Response(text="ok\n")
        if request.path != "/health/readiness":
            return web.Response(status=404, text="probes are at /health/liveness and /health/readiness\n")
        problem = self._problem()
        return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")
