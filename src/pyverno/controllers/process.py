"""A controller as a process: signals, the port of the metrics, and an event loop that is fast where that is installed.

This module must never know what a controller does.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import web

from pyverno.value import dataclass

__all__ = ["MetricsPort", "loop_factory", "run_process"]


@dataclass(frozen=True, slots=True)
class MetricsPort:
    """Where metrics are served over plain HTTP, and what makes them; port 0 lets the system choose."""

    expose: Callable[[], bytes]
    address: str = ""
    port: int = 8000


def run_process(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], metrics: MetricsPort | None) -> None:
    """Run until the work ends or a signal (SIGTERM, SIGINT) sets its event; a second signal ends it at once.

    Whatever the work raises is raised.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(work, metrics))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes a fast event loop, None where the usual one has to do."""
    try:
        import uvloop  # type: ignore[import-not-found, unused-ignore]  # an extra of this package
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], metrics: MetricsPort | None) -> None:
    stop = asyncio.Event()
    working = asyncio.ensure_future(work(stop))
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            working.cancel()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    runner = None if metrics is None else await _serve_metrics(metrics)
    try:
        await working
    finally:
        if runner is not None:
            await runner.cleanup()


async def _serve_metrics(metrics: MetricsPort) -> web.ServerRunner:
    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path != "/metrics":
            return web.Response(status=404, text="metrics are at /metrics\n")
        return web.Response(body=metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, metrics.address or None, metrics.port).start()
    return runner
