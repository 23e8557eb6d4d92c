"""The HTTP server below the webhook and the pages, with limits on connections.

Closes connections that exceed the limit, stall in the TLS handshake, or send no complete request head in time. At the
limit, a new connection replaces the one that has been idle longest, or one of the client that has the most: one address
cannot crowd out the others. A new handshake replaces the oldest. What waits in a connection to be read takes some
kilobytes. Malformed HTTP is reported once, as a `MalformedRequestError`, and never as a traceback. Bodies are never
decompressed.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from asyncio import sslproto
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

import orjson
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError, InvalidHeader, LineTooLong

from pyverno.errors import PyvernoError
from pyverno.kube.status import StatusError

__all__ = ["BoundedServer", "BoundedSite", "MalformedRequestError"]

_LINGERING_SECONDS: Final = 1.0
"""How long the rest of a rejected body is read, so that the client sees the response."""
_HANDSHAKE_SECONDS: Final = 10.0
_LAST_LINGERING_SECONDS: Final = 0.1
"""The same while the server stops."""
_FAREWELL_SECONDS: Final = (0.2, 1.0)
"""How long clients have to agree to the end of TLS when the server stops: with and without everything sent to them."""
_RECLAIM_SECONDS: Final = 1.0
"""How long a connection must have been idle to be replaced: its last response has been sent by then."""

_MOST_HANDSHAKES: Final = 1000
"""Handshakes in progress, each of which takes about 50 KiB: with one more, the oldest is ended."""
_TLS_BYTES: Final = 16 * 1024
"""The buffer of each TLS connection, and what OpenSSL keeps of it: 256 KiB by default, whatever the client sends."""
_UNREAD_BYTES: Final = 16 * 1024
"""Limit of an unread body: up to twice as much is kept decrypted, and once as much encrypted."""

_FAULTS: Final = (
    (LineTooLong, "the head of a request is too large"),
    (BadHttpMethod, "a request line has no valid method"),
    (InvalidHeader, "a header is not valid"),
)
_OF_CLIENTS: Final = (HttpProcessingError, web.RequestPayloadError, OSError)
"""Log lines of the library that a client has caused."""


class MalformedRequestError(PyvernoError):
    """Bytes that are not a complete request; `status` is the response if the client is still connected."""

    code = "malformed-request"
    status = 400


Complain = Callable[[MalformedRequestError], None]
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Refuse = Callable[[str], web.Response]


def _as_status(what: str) -> web.Response:
    """Return the response to malformed HTTP as a `Status` of Kubernetes."""
    body = orjson.dumps(StatusError(400, "BadRequest", what).to_json())
    return web.Response(status=400, body=body, content_type="application/json")


class BoundedServer(web.Server):
    """Limits the number of connections and the time to the first complete request head.

    At the limit a new connection replaces the one that has been idle longest, if that is at least `reclaim_seconds`:
    clients that send one request and then nothing cannot keep others out. Otherwise it replaces the oldest one of the
    address with the most, unless its own address has as many: clients that go on sending cannot either.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        head_seconds: float,
        max_connections: int,
        complain: Complain,
        handshake_seconds: float = _HANDSHAKE_SECONDS,
        reclaim_seconds: float = _RECLAIM_SECONDS,
        refuse: Refuse = _as_status,
        request_factory: Any = None,
        **options: Any,
    ) -> None:
        """Take the request handler, the limits, a callback for malformed requests, and `aiohttp.web.Server` options.

        `refuse` makes the response to malformed HTTP, `request_factory` the requests of the handler.
        """
        settings = {
            "access_log": None,
            "auto_decompress": False,
            "lingering_time": _LINGERING_SECONDS,
            "read_bufsize": _UNREAD_BYTES,
            **options,
        }
        super().__init__(self._serve, request_factory=request_factory, **settings)
        self._answer = answer
        self.refuse = refuse
        self._reclaim_seconds = reclaim_seconds
        self._idle: dict[asyncio.BaseProtocol, float] = {}  # since when, the longest first
        self._head_seconds = head_seconds
        self._max_connections = max_connections
        self._handshake_seconds = handshake_seconds
        self._complain = complain
        self._settings = settings
        self._silent: dict[object, asyncio.TimerHandle] = {}
        self._open: dict[web.RequestHandler, asyncio.Transport] = {}
        self._by_address: dict[str, dict[web.RequestHandler, None]] = {}  # the oldest first
        self._addresses: dict[web.RequestHandler, str] = {}  # a transport that is lost does not tell
        self._all_lost = asyncio.Event()
        self._numbers = itertools.count()
        self._shaking: dict[int, tuple[float, asyncio.Task[Any] | None]] = {}  # since when and in which task
        self._sweep: asyncio.TimerHandle | None = None

    def __call__(self) -> web.RequestHandler:
        """Create a connection; it counts as a failed handshake unless it is established in time."""
        if len(self._shaking) >= _MOST_HANDSHAKES:
            self._end_oldest_handshake()
        number = next(self._numbers)
        # asyncio calls this in the task that accepts the connection, and ends the handshake with that task
        self._shaking[number] = time.monotonic(), asyncio.current_task()
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._handshake_seconds, self._sweep_handshakes)
        return _Connection(self, number, loop=self._loop, **self._settings)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Start waiting for a request, or close the connection if there are too many."""
        super().connection_made(handler, transport)
        self._open[handler] = transport
        limit_unread = getattr(transport, "set_read_buffer_limits", None)  # only those of TLS have such a buffer
        if limit_unread is not None:
            limit_unread(_UNREAD_BYTES)
        if isinstance(handler, _Connection):
            self._shaking.pop(handler.number, None)
        address = _address_of(transport)
        if len(self.connections) > self._max_connections and not self._make_room(address):
            self.report("one connection too many", transport)
            transport.abort()
            return
        self._addresses[handler] = address
        self._by_address.setdefault(address, {})[handler] = None
        self._silent[handler] = self._loop.call_later(self._head_seconds, self._look_at, handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection; its timer would keep its buffers."""
        self._hear(handler)
        self._idle.pop(handler, None)
        self._open.pop(handler, None)
        self._forget_address(handler)
        if not self._open:
            self._all_lost.set()
        super().connection_lost(handler, exc)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request whose head has arrived; the connection is idle before and afterwards."""
        connection = request.protocol
        self._hear(connection)
        self._idle.pop(connection, None)
        try:
            return await self._answer(request)
        finally:
            if request.transport is not None:
                self._idle[connection] = time.monotonic()

    def _make_room(self, address: str) -> bool:
        """Close a connection for a new one of an address; return whether there was one to close."""
        connection, since = next(iter(self._idle.items()), (None, 0.0))
        if isinstance(connection, web.RequestHandler) and time.monotonic() - since >= self._reclaim_seconds:
            self._replace(connection, "an idle connection made room for a new one")
            return True
        crowd = max(self._by_address.values(), key=len, default={})
        if len(crowd) <= len(self._by_address.get(address, ())) + 1:
            return False
        self._replace(next(iter(crowd)), "a connection of the client with the most made room for another client")
        return True

    def _replace(self, connection: web.RequestHandler, why: str) -> None:
        self._idle.pop(connection, None)
        transport = self._open.get(connection)
        self.report(why, transport)
        self._forget_address(connection)
        if transport is not None:
            transport.abort()  # no TLS shutdown, which a client could delay

    def _forget_address(self, connection: web.RequestHandler) -> None:
        address = self._addresses.pop(connection, None)
        if address is None:
            return  # it was one too many, or has made room already
        own = self._by_address[address]
        del own[connection]
        if not own:
            del self._by_address[address]

    def report(self, what: str, transport: asyncio.BaseTransport | None = None) -> None:
        """Report something malformed, with the address of the client."""
        peer = None if transport is None else transport.get_extra_info("peername")
        self._complain(MalformedRequestError(f"{what} (from {peer[0]})" if isinstance(peer, tuple) else what))

    def hasten(self) -> None:
        """From now on read the rest of a rejected body for a moment only: the server stops."""
        self._settings["lingering_time"] = _LAST_LINGERING_SECONDS
        for connection in self._open:
            if isinstance(connection, _Connection):
                connection.hasten()

    async def shutdown(self, timeout: float | None = None) -> None:
        """Close all connections; those whose clients do not agree to the end of TLS in time are aborted."""
        if self._sweep is not None:
            self._sweep.cancel()
        self.hasten()
        await super().shutdown(timeout)
        waited = 0.0
        for until in _FAREWELL_SECONDS:
            if not self._open:
                return
            self._all_lost.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_lost.wait(), until - waited)
            waited = until
            for transport in tuple(self._open.values()):
                if until == _FAREWELL_SECONDS[-1] or not transport.get_write_buffer_size():
                    transport.abort()
            await asyncio.sleep(0)

    def _hear(self, connection: object) -> None:
        """Wait no longer for the first request of a connection."""
        timer = self._silent.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _look_at(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        del self._silent[handler]
        if not transport.is_closing():
            self.report("no complete request head in time", transport)
        transport.abort()

    def _end_oldest_handshake(self) -> None:
        """Make room for a new handshake."""
        _, task = self._shaking.pop(next(iter(self._shaking)))
        self.report("a TLS handshake made room for a new one")
        if task is not None:
            task.cancel()

    def _sweep_handshakes(self) -> None:
        """Report failed handshakes: the event loop does not report them."""
        self._sweep = None
        before = time.monotonic() - self._handshake_seconds
        while self._shaking:
            number, (began, _) = next(iter(self._shaking.items()))
            if began > before:
                wait = began - before + 0.001
                self._sweep = self._loop.call_later(wait, self._sweep_handshakes)
                return
            del self._shaking[number]
            self.report("a TLS handshake failed")


def _address_of(transport: asyncio.BaseTransport) -> str:
    """Return the address of a client; in IPv6 its network of 64 bits, which one machine has for itself."""
    peer = transport.get_extra_info("peername")
    address = str(peer[0]) if isinstance(peer, tuple) else ""
    if ":" not in address:
        return address
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or ip_network((int(found), 64), strict=False))


class _Connection(web.RequestHandler):
    __slots__ = ("number",)

    def __init__(self, server: BoundedServer, number: int, **options: Any) -> None:
        super().__init__(server, **options)
        self.number = number

    def hasten(self) -> None:
        """Read the rest of a rejected body for a moment only."""
        self._lingering_time = _LAST_LINGERING_SECONDS

    def force_close(self) -> None:
        """Close the connection once: asyncio cannot abort a TLS connection that was closed twice."""
        if self.transport is not None and self.transport.is_closing():
            self.transport = None
        super().force_close()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log errors of the server; errors of a client are reported by `handle_error` or ignored."""
        if not isinstance(kw.get("exc_info"), _OF_CLIENTS):
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a malformed request with 400 and close the connection."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        what = next((text for kind, text in _FAULTS if isinstance(exc, kind)), "a request cannot be read")
        refuse: Refuse = _as_status
        if isinstance(self._manager, BoundedServer):
            self._manager.report(what, self.transport)
            refuse = self._manager.refuse
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun")
        response = refuse(what)
        response.force_close()
        return response


class BoundedSite(web.TCPSite):
    """A listening site with a time limit on TLS handshakes and shutdowns."""

    __slots__ = ("_handshake_seconds",)

    def __init__(self, *arguments: Any, handshake_seconds: float, **options: Any) -> None:
        """Take the limit, and the arguments of `aiohttp.web.TCPSite`."""
        super().__init__(*arguments, **options)
        self._handshake_seconds = handshake_seconds

    async def start(self) -> None:
        """Listen; raises OSError if the port cannot be opened."""
        if self._ssl_context is not None:
            sslproto.SSLProtocol.max_size = _TLS_BYTES  # there is no argument for it: it holds for the whole process
            _bear_server_names()
        # as in aiohttp, which has no argument for the limits: the default is a minute
        await web.BaseSite.start(self)
        server = self._runner.server
        assert server is not None  # noqa: S101 - the line above sees to it
        limit = self._handshake_seconds if self._ssl_context else None
        self._server = await asyncio.get_running_loop().create_server(
            server,
            self._host,
            self._port,
            ssl=self._ssl_context,
            backlog=self._backlog,
            reuse_address=self._reuse_address,
            reuse_port=self._reuse_port,
            ssl_handshake_timeout=limit,
            ssl_shutdown_timeout=limit,
        )


def _bear_server_names() -> None:
    """Let a server name that is no ASCII be a handshake that fails, and nothing else.

    For each of them Python would write a traceback to the standard error, as often as a client wants.
    """
    report = sys.unraisablehook
    if isinstance(report, _ServerNames):
        return
    sys.unraisablehook = _ServerNames(report)


class _ServerNames:
    """Report exceptions that no code can catch, except those about server names in handshakes."""

    def __init__(self, report: Callable[[sys.UnraisableHookArgs], object]) -> None:
        self._report = report

    def __call__(self, found: sys.UnraisableHookArgs) -> None:
        if not (isinstance(found.exc_value, UnicodeDecodeError) and isinstance(found.object, bytes)):
            self._report(found)
