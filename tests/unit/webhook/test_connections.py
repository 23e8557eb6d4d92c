"""Malformed and partial HTTP: reported once, counted, logged at a limited rate, without a traceback."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import socket
import ssl
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

import pytest

from pyverno.telemetry.logs import AnswerLog
from pyverno.telemetry.metrics import Metrics
from pyverno.webhook import connections
from pyverno.webhook import server as server_module
from pyverno.webhook.connections import MalformedRequestError, _address_of
from pyverno.webhook.server import Limits, WebhookServer
from tests.support.webhookserver import Recorded, make_certificate, make_server, review_body
from tests.unit.webhook.test_server import POD, TEAM

CERTIFICATE = make_certificate()
HEAD = b"POST /validate/fail HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
REVIEW = json.dumps(review_body(POD)).encode()
MALFORMED = {
    "garbage": b"\x00\x01\x02\xff\xfe\r\n\r\n",
    "text": b"hello there\r\n\r\n",
    "no-version": b"GET /validate\r\n\r\n",
    "bad-version": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "bad-method": b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "long-line": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "long-header": b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
    "many-headers": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
    "bad-header": b"GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n",
    "null-in-header": b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
    "two-lengths": HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "odd-length": HEAD + b"Content-Length: x\r\n\r\nabcd",
    "negative-length": HEAD + b"Content-Length: -1\r\n\r\n",
    "length-and-chunks": HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad-chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "huge-chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nabc",
    "chunk-without-end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX3\r\n",
    "h2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "early-close": HEAD + b"Content-Length: 100\r\n\r\n{",
    "early-close-in-chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
}
ENCODED = {
    "gzip": (b"Content-Encoding: gzip", 415),
    "deflate": (b"Content-Encoding: deflate", 415),
    "unknown-coding": (b"Content-Encoding: zzz", 415),
    "twice": (b"Content-Encoding: identity\r\nContent-Encoding: gzip", 415),
    "two-types": (b"Content-Type: text/yaml", 415),
    "expectation": (b"Expect: a-miracle", 417),
    "transfer-coding": (b"Transfer-Encoding: gzip, chunked", 501),
}


def serve(server: WebhookServer, scene: Callable[[WebhookServer], Awaitable[None]]) -> None:
    """Run a scene with a listening server."""

    async def run() -> None:
        await server.start("127.0.0.1", 0)
        try:
            await scene(server)
        finally:
            await server.stop()

    asyncio.run(run())


async def send(server: WebhookServer, *parts: bytes, seconds: float = 60.0) -> bytes:
    """Send bytes over TLS and return the response, or nothing after some seconds."""
    reader, writer = await asyncio.open_connection("localhost", server.port, ssl=CERTIFICATE.client_context())
    for part in parts:
        writer.write(part)
        await writer.drain()
    answer = b""
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(seconds):
            answer = await reader.read(65536)
    writer.transport.abort()
    return answer


async def is_denied(server: WebhookServer) -> bool:
    """Return whether the server denies a review as expected."""
    answer = await send(server, HEAD + f"Content-Length: {len(REVIEW)}\r\n\r\n".encode() + REVIEW)
    return b'"allowed":false' in answer


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_request_is_reported_once_and_has_no_traceback(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The response is 400 if the sender still reads; other requests go on, and no library logs it."""
    told = Recorded()

    async def scene(server: WebhookServer) -> None:
        answer = await send(server, sent, seconds=0.3)  # the server may wait for more
        assert not answer or b" 400 " in answer.partition(b"\r\n")[0], answer
        assert await is_denied(server)

    with caplog.at_level(logging.INFO):
        serve(make_server(CERTIFICATE, TEAM, observer=told), scene)
    assert [MalformedRequestError] == [type(error) for _, error in told.failures]
    assert [] == caplog.records


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\x16\x03\x01\x00\x05\x01", b"", b"\x00" * 100],
    ids=["plain-http", "half-a-handshake", "nothing", "garbage"],
)
def test_a_handshake_that_fails_is_reported_once(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Cases are plain HTTP on the TLS port, half of a handshake, silence, and garbage."""
    told = Recorded()

    async def scene(server: WebhookServer) -> None:
        _, writer = await asyncio.open_connection("localhost", server.port)
        writer.write(sent)
        await writer.drain()
        while not told.failures:
            await asyncio.sleep(0.02)
        writer.close()
        assert await is_denied(server)

    with caplog.at_level(logging.INFO):
        serve(make_server(CERTIFICATE, TEAM, observer=told, limits=Limits(handshake_seconds=1)), scene)
    assert ["a TLS handshake failed"] == [str(error) for _, error in told.failures]
    assert [] == caplog.records


def test_one_address_cannot_crowd_out_the_others() -> None:
    """Its connections always have a request in work; at the limit each other address gets as many as it has."""
    made: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def begin(server: WebhookServer, address: str) -> asyncio.StreamReader:
        found = await asyncio.open_connection(
            "127.0.0.1",
            server.port,
            ssl=CERTIFICATE.client_context(),
            server_hostname="localhost",
            local_addr=(address, 0),
        )
        made.append(found)
        with suppress(ConnectionError):  # it may be one too many
            found[1].write(HEAD + b"Content-Length: 10\r\n\r\n")
            await found[1].drain()
        return found[0]

    async def scene(server: WebhookServer) -> None:
        crowd = [await begin(server, "127.0.0.1") for _ in range(6)]
        others = [await begin(server, "127.0.0.2") for _ in range(3)]
        assert [b""] * 3 == [await _rest(reader) for reader in crowd[:3]]
        for late in ("127.0.0.1", "127.0.0.2"):  # each of them has half of the places
            assert not await _rest(await begin(server, late))
        third = await begin(server, "127.0.0.3")
        assert not await _rest(crowd[3])
        open_ones = [*crowd[4:], *others, third]
        assert [False] * 6 == [reader.at_eof() for reader in open_ones]
        for _, writer in made:
            writer.transport.abort()
        while server._http._by_address or server._http._addresses:
            await asyncio.sleep(0.02)

    async def limited(server: WebhookServer) -> None:
        async with asyncio.timeout(60):
            await scene(server)

    limits = Limits(connections=6, head_seconds=600, body_seconds=600)
    serve(make_server(CERTIFICATE, TEAM, limits=limits), limited)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("192.0.2.1", 1), "192.0.2.1"),
        (("::ffff:192.0.2.1", 1, 0, 0), "192.0.2.1"),
        (("2001:db8::5:6", 1, 0, 0), "2001:db8::/64"),
        (("fe80::1%eth0", 1, 0, 2), "fe80::/64"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_machine_is_one_client(peer: object, address: str) -> None:
    """In IPv6 it has 2^64 addresses."""
    transport = asyncio.Transport(extra={"peername": peer})
    assert address == _address_of(transport)


def test_a_server_name_that_is_no_text_is_a_handshake_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reports it as an exception that nobody can catch: a traceback for each, which no limit holds back."""
    written: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", written.append)
    told = Recorded()
    hello = ssl.MemoryBIO()
    client = CERTIFICATE.client_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    sent = hello.read().replace(b"localhost", b"\xcf\xffcalhost")

    async def scene(server: WebhookServer) -> None:
        reader, writer = await asyncio.open_connection("localhost", server.port)
        writer.write(sent)
        await writer.drain()
        await reader.read()
        writer.close()
        while not told.failures:
            await asyncio.sleep(0.02)
        assert await is_denied(server)

    serve(make_server(CERTIFICATE, TEAM, observer=told, limits=Limits(handshake_seconds=1)), scene)
    assert ([], ["a TLS handshake failed"]) == (written, [str(error) for _, error in told.failures])


def test_a_flood_of_malformed_requests_is_counted_in_full_and_logged_a_few_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The metric counts all failures; a summary line counts those without a line of their own."""
    metrics, lines = Metrics(), AnswerLog()

    class Both(Recorded):
        def failed(self, path: str, error: BaseException) -> None:
            metrics.failed(path, error)
            lines.failed(path, error)

    async def scene(server: WebhookServer) -> None:
        for _ in range(40):
            await send(server, MALFORMED["garbage"])

    with caplog.at_level(logging.INFO, "pyverno"):
        serve(make_server(CERTIFICATE, TEAM, observer=Both()), scene)
    found = {reading.name: reading for reading in metrics.read()}
    assert {("MalformedRequestError",): 40} == found["kyverno_http_failures"].numbers
    assert 0 < len(caplog.records) <= 20
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.parametrize(("header", "code"), ENCODED.values(), ids=ENCODED)
def test_a_body_in_another_form_is_refused_with_a_status(header: bytes, code: int) -> None:
    """A small compressed body could become large, and ambiguous headers are not accepted."""

    async def scene(server: WebhookServer) -> None:
        body = gzip.compress(REVIEW)
        length = b"" if b"Transfer" in header else f"Content-Length: {len(body)}\r\n".encode()
        answer = await send(server, HEAD + header + b"\r\n" + length + b"\r\n" + (body if length else b"0\r\n\r\n"))
        first, _, rest = answer.partition(b"\r\n")
        assert any(f" {each} ".encode() in first for each in (code, 400)), first  # the library rejects some of these
        assert "Status" == json.loads(rest.partition(b"\r\n\r\n")[2])["kind"]
        assert await is_denied(server)

    serve(make_server(CERTIFICATE, TEAM), scene)


def test_an_encoded_body_is_never_inflated() -> None:
    """The HTTP parser does not inflate it either: 700 MiB of blanks cost only their compressed size."""
    bomb = gzip.compress(b" " * 50_000_000)
    seen: list[int] = []

    async def scene(server: WebhookServer) -> None:
        read = server._bodies.read

        async def spied(request: object) -> bytes:
            seen.append(request.content._size)  # type: ignore[attr-defined]
            return await read(request)  # type: ignore[arg-type]

        server._bodies.read = spied  # type: ignore[method-assign, assignment]
        head = HEAD + b"Content-Encoding: gzip\r\n" + f"Content-Length: {len(bomb)}\r\n\r\n".encode()
        assert b" 415 " in await send(server, head + bomb)

    serve(make_server(CERTIFICATE, TEAM), scene)
    assert len(bomb) >= seen[0]


def test_a_client_that_expects_100_continue_receives_it() -> None:
    """The header is `Expect: 100-continue`; a chunked body works as well."""

    async def scene(server: WebhookServer) -> None:
        reader, writer = await asyncio.open_connection("localhost", server.port, ssl=CERTIFICATE.client_context())
        writer.write(HEAD + f"Expect: 100-continue\r\nContent-Length: {len(REVIEW)}\r\n\r\n".encode())
        assert b"HTTP/1.1 100 Continue\r\n" == await reader.readline()
        assert b"\r\n" == await reader.readline()
        writer.write(REVIEW)
        assert b"HTTP/1.1 200 OK\r\n" == await reader.readline()
        writer.transport.abort()
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (REVIEW[:10], REVIEW[10:]))
        answer = await send(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", chunks, b"0\r\n\r\n")
        assert b'"allowed":false' in answer

    serve(make_server(CERTIFICATE, TEAM), scene)


def test_requests_whose_body_never_arrives_do_not_hold_up_the_end() -> None:
    """A hundred of them get 408 at the shutdown, whatever their body timeout is; none of their bytes stay counted."""
    server = make_server(CERTIFICATE, TEAM, limits=Limits(body_seconds=600, drain_seconds=600))

    async def run() -> None:
        await server.start("127.0.0.1", 0)
        context = CERTIFICATE.client_context()
        stuck = [await asyncio.open_connection("localhost", server.port, ssl=context) for _ in range(100)]
        for number, (_, writer) in enumerate(stuck):
            size = b"Transfer-Encoding: chunked\r\n\r\n5\r\nab" if number % 2 else b"Content-Length: 5000000\r\n\r\n{"
            writer.write(HEAD + size)
        while server._in_work < 100:
            await asyncio.sleep(0.01)
        while server._bodies.in_work < 100:
            await asyncio.sleep(0.01)
        assert server._bodies.in_work < 1000, "bytes are counted on arrival"
        assert await is_denied(server)
        async with asyncio.timeout(60):  # it once took more than twenty seconds
            await server.stop()
        assert 0 == server._bodies.in_work
        for reader, writer in stuck:
            with suppress(ConnectionError, ssl.SSLError):
                assert b" 408 " in (await reader.read())[:20]
            writer.transport.abort()

    asyncio.run(run())


def test_incomplete_requests_are_no_work_that_the_end_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """New ones come until the end, and the rest of a rejected body never does."""
    endless = 600.0
    monkeypatch.setattr(connections, "_LINGERING_SECONDS", endless)
    monkeypatch.setattr(server_module, "_LAST_SECONDS", endless)
    limits = Limits(
        head_seconds=endless,
        body_seconds=endless,
        handshake_seconds=endless,
        drain_seconds=endless,
        linger_seconds=0.2,
    )
    server = make_server(CERTIFICATE, TEAM, limits=limits)

    async def run() -> None:
        await server.start("127.0.0.1", 0)
        context, port = CERTIFICATE.client_context(), server.port
        is_over = threading.Event()

        def stay_mute() -> None:
            with ExitStack() as held, suppress(OSError):
                while not is_over.is_set():
                    raw = socket.create_connection(("127.0.0.1", port), timeout=endless)
                    connection = held.enter_context(context.wrap_socket(raw, server_hostname="localhost"))
                    connection.sendall(HEAD + b"Content-Length: 5000000\r\n\r\n{")
                    time.sleep(0.05)
                is_over.wait()

        mute = asyncio.create_task(asyncio.to_thread(stay_mute))
        while server._in_work < 5:
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(60):
                await server.stop()
        finally:
            is_over.set()
            await mute

    asyncio.run(run())


def test_a_handshake_too_many_ends_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that connect and say nothing keep nobody out, and cannot be more than the limit."""
    monkeypatch.setattr(connections, "_MOST_HANDSHAKES", 5)
    told = Recorded()

    async def scene(server: WebhookServer) -> None:
        silent = [await asyncio.open_connection("localhost", server.port) for _ in range(20)]
        assert await is_denied(server)
        async with asyncio.timeout(60):
            assert [b""] * 15 == [await reader.read() for reader, _ in silent[:15]]
        assert 0 < len(server._http._shaking) <= 5
        for _, writer in silent:
            writer.transport.abort()

    serve(make_server(CERTIFICATE, TEAM, observer=told, limits=Limits(handshake_seconds=600)), scene)
    assert {"a TLS handshake made room for a new one"} == {str(error) for _, error in told.failures}


def test_clients_that_never_agree_to_the_end_of_tls_are_closed_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """They read one answer and nothing more; a connection that stayed open would be a warning."""
    endless = 600.0
    monkeypatch.setattr(connections, "_FAREWELL_SECONDS", (0.2, endless))
    server = make_server(CERTIFICATE, TEAM, limits=Limits(handshake_seconds=endless))

    def ask(connection: ssl.SSLSocket) -> None:
        connection.sendall(HEAD + f"Content-Length: {len(REVIEW)}\r\n\r\n".encode() + REVIEW)
        assert b"HTTP/1.1 200 OK" == connection.recv(15)

    async def run(held: ExitStack) -> None:
        await server.start("127.0.0.1", 0)
        context = CERTIFICATE.client_context()

        def connect() -> ssl.SSLSocket:
            raw = socket.create_connection(("127.0.0.1", server.port), timeout=300)
            return held.enter_context(context.wrap_socket(raw, server_hostname="localhost"))

        for _ in range(3):
            await asyncio.to_thread(lambda: ask(connect()))
        async with asyncio.timeout(60):
            await server.stop()

    with ExitStack() as held:
        asyncio.run(run(held))
        gc.collect()
