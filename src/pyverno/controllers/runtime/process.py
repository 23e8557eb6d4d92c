"""The process of a controller: signals, additional HTTP ports, and uvloop where it is installed."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from pyverno.controllers.runtime.gctuning import keep_collections_short
from pyverno.controllers.runtime.mallocarenas import limit_arenas
from pyverno.errors import HostError
from pyverno.telemetry.throttle import Throttle
from pyverno.webhook.connections import BoundedServer, BoundedSite, MalformedRequestError

__all__ = ["HttpPort", "Service", "loop_factory", "run_process", "serve_http"]

_HEAD_SECONDS: Final = 5.0
_MAX_CONNECTIONS: Final = 100
_LAST_SECONDS: Final = 1.0
"""How long responses in progress may take at shutdown."""

_SWITCH_SECONDS: Final = 0.0005
"""How long a thread may compute while others wait; with the default of 5 ms the loop waits too long behind a few."""

log = logging.getLogger("pyverno.admission")

Service = AbstractAsyncContextManager[object]
"""A service that is open from before the work starts until after it ends."""


def run_process(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], services: Sequence[Service] = ()) -> None:
    """Run until the work ends or a signal (SIGTERM, SIGINT) sets its event; a second signal ends it at once.

    Exceptions of the work are raised.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    limit_arenas()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(work, services))


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of uvloop's event loop; None where uvloop is not installed."""
    try:
        import uvloop  # type: ignore[import-not-found, unused-ignore]  # an extra of this package
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], services: Sequence[Service]) -> None:
    stop = asyncio.Event()
    running = asyncio.ensure_future(_serve_and_work(work, services, stop))
    loop = asyncio.get_running_loop()

    def end() -> None:
        if stop.is_set():
            running.cancel()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    collecting = asyncio.ensure_future(keep_collections_short())
    try:
        await running
    finally:
        collecting.cancel()


async def _serve_and_work(
    work: Callable[[asyncio.Event], Coroutine[Any, Any, None]], services: Sequence[Service], stop: asyncio.Event
) -> None:
    async with AsyncExitStack() as stack:
        for service in services:
            await stack.enter_async_context(service)
        await work(stop)


async def serve_http(
    handle: Callable[[web.BaseRequest], Coroutine[Any, Any, web.StreamResponse]],
    address: str,
    port: int,
    **options: Any,
) -> web.ServerRunner:
    """Listen for HTTP and return the runner to clean up at the end; `options` are those of `aiohttp.web.TCPSite`.

    As on the webhook's port, connections that send no request are closed and malformed requests are logged.

    Raises HostError when the port cannot be opened, for example because it is in use.
    """

    throttle = Throttle()

    def complain(error: MalformedRequestError) -> None:
        held_back = throttle.held_back("malformed")
        if held_back is not None:
            fields = {"port": port, "error": error.message, "held_back": held_back}
            log.info("request refused", extra={"fields": fields})

    server = BoundedServer(
        handle,
        head_seconds=_HEAD_SECONDS,
        max_connections=_MAX_CONNECTIONS,
        complain=complain,
        keepalive_timeout=75.0,
    )
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=_LAST_SECONDS)
    await runner.setup()
    try:
        await BoundedSite(runner, address or None, port, handshake_seconds=_HEAD_SECONDS, **options).start()
    except OSError as error:
        await runner.cleanup()
        where = f"{address or '*'}:{port}"
        raise HostError(f"cannot listen on `{where}`: {(error.strerror or str(error)).lower()}") from None
    return runner


class HttpPort(ABC):
    """A port that serves HTTP while its context is open; port 0 means any free port."""

    def __init__(self, address: str, port: int) -> None:
        """Take the address and the port to listen on."""
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

    @abstractmethod
    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse: ...
