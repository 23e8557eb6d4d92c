"""The listening port of the pages: limits on connections, bodies, and responses that clients do not read.

Malformed HTTP is answered with a JSON error and counted in the log at a limited rate. Bodies are read as they were
sent, after the user was admitted, and never decompressed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import orjson
from aiohttp import web
from aiohttp.typedefs import Middleware

from pyverno.errors import UsageError
from pyverno.telemetry.throttle import Throttle
from pyverno.ui.server.security import HEADERS
from pyverno.value import dataclass
from pyverno.webhook.bodies import Bodies
from pyverno.webhook.connections import BoundedServer, BoundedSite, MalformedRequestError

__all__ = ["BODY", "Limits", "bounded_bodies", "listening", "sent_in_time"]

BODY: Final = web.RequestKey("body", bytes)
"""The body of a request that may have one."""

_LOG: Final = logging.getLogger("pyverno.ui")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a server; seconds are those that a client has to send or read."""

    connections: int = 1000
    head_seconds: float = 10.0
    body_bytes: int = 4 * 1024 * 1024
    all_bodies: int = 32 * 1024 * 1024
    body_seconds: float = 30.0
    answer_bytes: int = 128 * 1024 * 1024
    answer_seconds: float = 60.0


@asynccontextmanager
async def listening(
    app: web.Application, address: str, port: int, *, shutdown_seconds: float, limits: Limits | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Serve an application and yield host and port; raises UsageError when the port cannot be opened."""
    limits = limits or Limits()
    inner = web.AppRunner(app)
    await inner.setup()
    try:
        made = inner.server
        assert made is not None  # noqa: S101 - the line above sees to it
        server = BoundedServer(
            made.request_handler,
            request_factory=made.request_factory,
            head_seconds=limits.head_seconds,
            max_connections=limits.connections,
            complain=_complain(),
            refuse=_refuse,
        )
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=shutdown_seconds)
        await runner.setup()
        try:
            try:
                await BoundedSite(runner, address, port, handshake_seconds=limits.head_seconds).start()
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise UsageError(f"cannot listen at {address}:{port}: {reason}") from error
            host, found = runner.addresses[0][:2]
            yield host, found
        finally:
            await runner.cleanup()
    finally:
        await inner.cleanup()


def bounded_bodies(limits: Limits) -> Middleware:
    """Return a middleware that reads the body of a request within limits; raises StatusError (413, 415, 408, 503)."""
    bodies = Bodies(limits.body_bytes, limits.all_bodies, limits.body_seconds)

    @web.middleware
    async def read(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return await handler(request)
        body = await bodies.read(request)
        request[BODY] = body
        try:
            return await handler(request)
        finally:
            bodies.release(len(body))

    return read


def sent_in_time(limits: Limits) -> Middleware:
    """Return a middleware that sends responses, and closes the connection of a client that does not read them.

    Responses that wait for their clients have a limit of bytes together; a single one may be larger.
    """
    waiting = 0

    @web.middleware
    async def send(request: web.Request, handler: Handler) -> web.StreamResponse:
        nonlocal waiting
        response = await handler(request)
        if response.prepared or not isinstance(response, web.Response):
            return response
        size = len(response.body) if isinstance(response.body, bytes) else 0
        if waiting and waiting + size > limits.answer_bytes:
            text = "too many large answers are being sent: try again in a moment"
            return web.json_response({"error": text}, status=503)
        waiting += size
        try:
            async with asyncio.timeout(limits.answer_seconds):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        finally:
            waiting -= size
        return response

    return send


def _complain() -> Callable[[MalformedRequestError], None]:
    throttle = Throttle()

    def complain(error: MalformedRequestError) -> None:
        held_back = throttle.held_back("malformed")
        if held_back is not None:
            _LOG.info("request refused", extra={"fields": {"error": error.message, "held_back": held_back}})

    return complain


def _refuse(what: str) -> web.Response:
    body = orjson.dumps({"error": what})
    return web.Response(status=400, body=body, content_type="application/json", headers=HEADERS)
