"""Connections: slow and broken clients, and the answers to malformed requests."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from kubesandbox.authentication.certificates import Authority
from kubesandbox.http.connections import Connections, unmet

PIECE = b"x" * (1 << 20)
ENOUGH = 64
"""Pieces, more than all buffers between the server and a client can hold."""
SECONDS = 60


class Served:
    """A record of the handler's progress."""

    def __init__(self) -> None:
        self.written = 0
        self.is_stuck = asyncio.Event()
        self.ended = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer `/stream` with more than a client reads, `/wait` never, and everything else at once."""
        if request.path == "/wait":
            self.is_stuck.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
        if request.path != "/stream":
            return web.Response(text=f"{request.method} {len(await request.read())}")
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(ENOUGH):
                writing = asyncio.ensure_future(response.write(PIECE))
                done, _ = await asyncio.wait([writing], timeout=0.05)
                if not done:
                    self.is_stuck.set()
                await writing
                self.written += 1
        finally:
            self.ended.set()
        return response


Talk = Callable[[Served, int], Awaitable[None]]


def served(talk: Talk, context: ssl.SSLContext | None = None, **options: float) -> None:
    """Run a server for a client function, and stop it."""

    async def run() -> None:
        seen = Served()
        connections = Connections(seen.answer, handler_cancellation=True, **options)
        runner = web.ServerRunner(connections, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        async with asyncio.timeout(SECONDS):
            try:
                await talk(seen, runner.addresses[0][1])
            finally:
                await runner.cleanup()
                connections.drop()
                await asyncio.sleep(0)

    asyncio.run(run())


@asynccontextmanager
async def connection(port: int, data: bytes = b"") -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, send, and close in the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(data)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def told(port: int, data: bytes) -> bytes:
    """Send bytes and read until the server closes."""
    async with connection(port, data) as (reader, _):
        return await reader.read()


def get(path: str) -> bytes:
    """Return a request after which the connection is closed."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def test_slow_readers_wait_for_themselves() -> None:
    """The server buffers little for a slow client and meanwhile answers the others."""

    async def talk(seen: Served, port: int) -> None:
        async with connection(port, get("/stream")) as (reader, _):
            await seen.is_stuck.wait()
            assert seen.written < ENOUGH
            assert (await told(port, get("/"))).endswith(b"GET 0")
            await reader.readuntil(b"\r\n\r\n")
            size = len(await reader.read())
            assert size > ENOUGH * len(PIECE)
            assert ENOUGH == seen.written

    served(talk)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["nothing", "half-a-head"])
def test_a_connection_without_a_request_is_closed(begun: bytes) -> None:
    """One whose request is in work stays, and so does an idle one between two requests."""

    async def talk(seen: Served, port: int) -> None:
        stays = get("/").replace(b"Connection: close\r\n", b"")
        async with connection(port, get("/wait")), connection(port, stays) as (reader, writer):
            await reader.readuntil(b"GET 0")
            assert b"" == await told(port, begun)
            assert not seen.ended.is_set()
            writer.write(stays)
            await reader.readuntil(b"GET 0")

    served(talk, head_seconds=0.5)


@pytest.mark.parametrize("path", ["/stream", "/wait"])
def test_clients_that_go_away_end_their_requests(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """The server logs nothing when a client disconnects."""

    async def talk(seen: Served, port: int) -> None:
        async with connection(port, get(path)):
            await seen.is_stuck.wait()
        await seen.ended.wait()
        assert (await told(port, get("/"))).endswith(b"GET 0")

    with caplog.at_level(logging.WARNING):
        served(talk)
    assert [] == caplog.records


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return one for the server and one for clients."""
    now = datetime.now(UTC)
    authority = Authority.make("test", now=now)
    pair = authority.issue("server", now=now, hosts=("127.0.0.1",))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(pair.certificate + pair.key)
        server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=authority.certificate.decode())


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n"])
def test_connections_without_a_whole_handshake_delay_no_others(sent: bytes) -> None:
    """An unfinished handshake delays neither other clients nor the shutdown."""
    server, client = contexts()

    async def talk(_seen: Served, port: int) -> None:
        async with connection(port, sent):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
            writer.write(get("/"))
            assert (await reader.read()).endswith(b"GET 0")
            writer.transport.abort()

    served(talk, server)


def test_encrypted_connections_may_break_off() -> None:
    """A TLS connection may break in the middle of an answer."""
    server, client = contexts()

    async def talk(seen: Served, port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        writer.write(get("/stream"))
        await seen.is_stuck.wait()
        writer.transport.abort()
        await seen.ended.wait()

    served(talk, server)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400 Bad Request"),
        (b"\x00\x01\x02\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", b"400 Bad Request"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * ((1 << 20) + 9) + b"\r\n\r\n",
            b"431 Request Header Fields Too Large",
        ),
    ],
)
def test_what_is_no_request_is_answered_by_a_text(sent: bytes, status: bytes) -> None:
    """As in Go's server, the answer is plain text and the connection is closed."""

    async def talk(_seen: Served, port: int) -> None:
        found = await told(port, sent)
        assert (status, status) == (found.splitlines()[0].partition(b" ")[2], found.splitlines()[-1])

    served(talk)


@pytest.mark.parametrize("method", ["FOO", "get", "BREW-COFFEE"])
def test_unknown_methods_are_refused(method: str) -> None:
    """The answer is a Status, as for known methods that do not fit."""

    async def talk(_seen: Served, port: int) -> None:
        found = await told(port, f"{method} /api/v1/pods?x=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head, _, body = found.partition(b"\r\n\r\n")
        assert (b"405 Method Not Allowed", True) == (
            head.splitlines()[0].partition(b" ")[2],
            b"Content-Type: application/json" in head,
        )
        assert {"reason": "MethodNotAllowed", "code": 405, "details": {}}.items() <= orjson.loads(body).items()

    served(talk)


def test_compressed_bodies_stay_as_they_are() -> None:
    """An API server does not decompress request bodies."""

    async def talk(_seen: Served, port: int) -> None:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
        assert (await told(port, head + b"\x1f\x8b\x08\x00")).endswith(b"POST 4")

    served(talk)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"Expect": "100-Continue"}, None),
        ({"Expect": "200-ok"}, 417),
        ({"Transfer-Encoding": "chunked"}, None),
        ({"Transfer-Encoding": "gzip, chunked"}, 501),
    ],
)
def test_bodies_are_handled_in_known_ways_only(headers: dict[str, str], status: int | None) -> None:
    """Other encodings and expectations are refused before the body is read."""
    found = unmet(make_mocked_request("POST", "/", headers=headers))
    assert status == (found and found.status)
