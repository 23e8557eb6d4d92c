"""Connections of the HTTP server: what cannot even be read as a request is answered as Go's server does.

Bodies stay as they were sent: an API server knows no compressed ones. This module must never look into a request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from aiohttp import ClientConnectionResetError, web
from aiohttp.http_exceptions import BadHttpMessage, BadHttpMethod, LineTooLong

from pyverno.kube.json import dump as dump_json
from pyverno.kube.status import not_allowed
from pyverno.lazyregex import regex

__all__ = ["Connections", "unmet", "unreadable"]

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)
_HEAD_SECONDS = 32.0
"""Time to the first complete request head, as in Kubernetes (`ReadHeaderTimeout`)."""
_MAX_HEADER = 1 << 20
_MAX_HEADERS = 10_000
_REQUEST_LINE = regex(r"b'[!-~]+ [!-~]+ HTTP/1\.[01]'")
"""A whole request line in the words of the parser: only its method is unknown."""
_NOT_RAISED_HERE = (BadHttpMessage, web.RequestPayloadError, ClientConnectionResetError)
"""Errors that clients cause: unreadable requests, and connections that close before their response ends."""


class Connections(web.Server):
    """The factory of connections; those that send no complete request head in time are dropped.

    After `refuse` it drops those whose TLS handshake ends while the server stops.
    """

    def __init__(self, answer: Answer, *, head_seconds: float = _HEAD_SECONDS, **options: Any) -> None:
        """Take the request handler, the time to the first head, and the options of `aiohttp.web.Server`."""
        super().__init__(self._take, **options)
        self._answer = answer
        self._head_seconds = head_seconds
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        self._is_refusing = False
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}

    def refuse(self) -> None:
        """Drop every new connection from now on."""
        self._is_refusing = True

    def drop(self) -> None:
        """Close every connection at once, also those that wait for the client to agree to the end of TLS."""
        for transport in tuple(self._transports.values()):
            transport.abort()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take a connection that is ready for requests."""
        super().connection_made(handler, transport)
        self._transports[handler] = transport
        self._silent[handler] = self._loop.call_later(self._head_seconds, transport.abort)
        if self._is_refusing:
            transport.abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        self._transports.pop(handler, None)
        self._note_head(handler)
        super().connection_lost(handler, exc)

    async def _take(self, request: web.BaseRequest) -> web.StreamResponse:
        self._note_head(request.protocol)
        return await self._answer(request)

    def _note_head(self, handler: asyncio.BaseProtocol) -> None:
        timer = self._silent.pop(handler, None)
        if timer is not None:
            timer.cancel()

    def __call__(self) -> web.RequestHandler:
        """Make a connection."""
        return _Connection(
            self,
            loop=self._loop,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
            max_headers=_MAX_HEADERS,
            auto_decompress=False,
            access_log=None,  # type: ignore[arg-type]  # none is allowed, and said so elsewhere
        )


class _Connection(web.RequestHandler):
    __slots__ = ()

    def force_close(self) -> None:
        """Close the connection once: asyncio cannot abort a TLS connection that was closed twice."""
        if self.transport is not None and self.transport.is_closing():
            self.transport = None
        super().force_close()

    def log_exception(self, *args: object, **kw: object) -> None:
        """Log what went wrong, unless a client is at fault."""
        if isinstance(kw.get("exc_info"), _NOT_RAISED_HERE):
            _log.debug("a request cannot be read, or its client is gone")
        else:
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer an unreadable request and close the connection."""
        if not isinstance(exc, BadHttpMessage):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, BadHttpMethod) and _REQUEST_LINE.search(exc.message):
            body = dump_json(not_allowed().to_json()) + b"\n"
            headers = {"Cache-Control": "no-cache, private"}
            response = web.Response(status=405, body=body, content_type="application/json", headers=headers)
            response.force_close()
            return response
        return unreadable(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if isinstance(exc, LineTooLong) else None)


def unmet(request: web.BaseRequest) -> web.Response | None:
    """Answer a request that wants its body handled in an unsupported way; None for all others."""
    expected, coding = request.headers.get("Expect", ""), request.headers.get("Transfer-Encoding", "")
    if expected and expected.lower() != "100-continue":
        return web.Response(status=HTTPStatus.EXPECTATION_FAILED)
    if coding and coding.lower() != "chunked":
        response = web.Response(status=HTTPStatus.NOT_IMPLEMENTED, text="Unsupported transfer encoding")
        response.force_close()
        return response
    return None


def unreadable(status: HTTPStatus | None = None) -> web.Response:
    """Return the response to an unreadable request (400 by default) and close the connection."""
    known = status or HTTPStatus.BAD_REQUEST
    response = web.Response(status=known, text=f"{known.value} {known.phrase}", content_type="text/plain")
    response.force_close()
    return response
