"""The port of the pages against clients that only reach it: malformed, slow, huge, and never read."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from pyverno.ui.access.identity import Admission
from pyverno.ui.access.login import admit
from pyverno.ui.live import LiveUpdates
from pyverno.ui.server.serving import Limits
from tests.support.uiserver import UiServer, serve_ui
from tests.unit.ui.store.samples import report, result
from tests.unit.webhook.test_connections import MALFORMED

HOST = b"Host: localhost\r\n"
POST = b"POST /api/v1/views HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
SHORT = Limits(connections=20, head_seconds=0.5, body_seconds=0.5, answer_seconds=0.5)


def play(
    folder: Path,
    scene: Callable[[UiServer], Awaitable[None]],
    limits: Limits | None = None,
    live: LiveUpdates | None = None,
) -> None:
    """Serve with limits, and check in the end that the server still answers and that nothing was logged as an error."""

    async def run() -> None:
        async with serve_ui(folder, limits=limits, live=live) as ui:
            await scene(ui)
            assert {"items": []} == await ui.get("/api/v1/namespaces")

    asyncio.run(run())


async def talk(ui: UiServer, data: bytes, *, is_closing: bool = False, seconds: float = 30) -> bytes:
    """Send bytes and return everything that comes until the server closes the connection, or a second without more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(ui.url.rpartition(":")[2]))
    try:
        writer.write(data)
        with suppress(ConnectionError):
            await writer.drain()
        if is_closing:
            writer.write_eof()
        found = b""
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(seconds):
                while part := await reader.read(65536):
                    found += part
        return found
    finally:
        writer.close()


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_http_is_one_json_error(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a traceback nor a word of the request comes back."""
    data = (
        MALFORMED[name].replace(b"POST /validate/fail", b"POST /api/v1/views").replace(b"Host: a", b"Host: localhost")
    )

    async def scene(ui: UiServer) -> None:
        found = await talk(ui, data)
        head, _, body = found.partition(b"\r\n\r\n")
        expected = b" 408 " if "early-close" in name else b" 400 "  # a body that does not go on
        assert expected in head.splitlines()[0], found
        assert {"error"} == set(json.loads(body))
        assert 1 == found.count(b"HTTP/")
        await talk(ui, data, is_closing=True)  # one that does not wait for an answer

    with caplog.at_level(logging.INFO):
        play(tmp_path, scene, SHORT)
    assert [] == [each for each in caplog.records if each.exc_info or each.levelno >= logging.ERROR]


def test_a_smuggled_request_is_not_answered(tmp_path: Path) -> None:
    """What follows an ambiguous or refused body on the connection is no request."""
    hidden = b"GET /api/v1/config HTTP/1.1\r\n" + HOST + b"\r\n"
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    folded = b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}"

    async def scene(ui: UiServer) -> None:
        for attack in (both, folded, b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", b"Content-Length: +2\r\n\r\n{}"):
            assert b'"version"' not in await talk(ui, POST + attack + hidden, is_closing=True, seconds=5), attack

    play(tmp_path, scene, SHORT)


def test_pipelined_requests_are_answered_in_turn(tmp_path: Path) -> None:
    """Each once."""
    one = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"

    async def scene(ui: UiServer) -> None:
        found = await talk(ui, one * 50 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert 51 == found.count(b"HTTP/1.1 200 OK")

    play(tmp_path, scene)


def test_encoded_bodies_are_refused(tmp_path: Path) -> None:
    """A small one could become a large one."""
    bomb = gzip.compress(bytes(64 * 1024 * 1024))

    async def scene(ui: UiServer) -> None:
        for coding in (b"gzip", b"deflate", b"br", b"zzz"):
            head = POST + b"Content-Encoding: " + coding + b"\r\nContent-Length: %d\r\n\r\n" % len(bomb)
            assert b" 415 " in (await talk(ui, head + bomb, seconds=5)).splitlines()[0]

    play(tmp_path, scene, SHORT)


@pytest.mark.parametrize("framing", [b"Content-Length: 99999999\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_a_body_without_end_is_refused(framing: bytes, tmp_path: Path) -> None:
    """By its declared length at once, else when it has too many bytes."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    async def scene(ui: UiServer) -> None:
        found = await talk(ui, POST + framing + chunk * 80, seconds=10)
        assert b" 413 " in found.splitlines()[0]

    play(tmp_path, scene)


def test_a_body_that_does_not_arrive_ends_in_time(tmp_path: Path) -> None:
    """408, after the time for bodies."""

    async def scene(ui: UiServer) -> None:
        found = await talk(ui, POST + b"Content-Length: 100\r\n\r\n{", seconds=30)
        assert b" 408 " in found.splitlines()[0]

    play(tmp_path, scene, SHORT)


def test_connections_that_send_no_head_are_closed(tmp_path: Path) -> None:
    """Others are served although more of them connect than connections are allowed."""

    async def scene(ui: UiServer) -> None:
        found = await asyncio.gather(*(talk(ui, b"GET /healthz HTTP/1.1\r\nX: ") for _ in range(40)))
        assert {b""} == set(found)

    play(tmp_path, scene, SHORT)


def test_a_body_is_not_read_before_the_login(tmp_path: Path) -> None:
    """Clients without a login get 401 at once, whatever they would send."""

    class Nobody:
        def identify(self, _: web.Request) -> None:
            return None

        def is_known(self, _: web.Request) -> bool:
            return False

    async def run() -> None:
        async with serve_ui(tmp_path, admission=admit(Nobody(), Admission(), None)) as ui:
            found = await talk(ui, POST + b"Content-Length: 3000000\r\n\r\n{", seconds=10)
            assert b" 401 " in found.splitlines()[0]

    asyncio.run(run())


def test_clients_that_never_read_lose_their_connection(tmp_path: Path) -> None:
    """Their answers are held for a bounded time only."""

    async def scene(ui: UiServer) -> None:
        results = [result(f"policy-{number}", message="m" * 4000) for number in range(500)]
        await ui.feed.write([report(*results)])
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", int(ui.url.rpartition(":")[2])))
            await loop.sock_sendall(client, (b"GET /api/v1/results?limit=500 HTTP/1.1\r\n" + HOST + b"\r\n") * 20)
            await asyncio.sleep(3)  # the server waits for half a second
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)  # what the system holds comes fast
            size = 0
            with suppress(ConnectionError):
                while part := await loop.sock_recv(client, 2**20):
                    size += len(part)
            assert size < 20 * 500 * 4000 / 2  # it was ended in the middle of the answers

    async def run() -> None:
        async with serve_ui(tmp_path, limits=SHORT) as ui:
            await scene(ui)
            async with asyncio.timeout(60):
                await ui.get("/api/v1/config")

    asyncio.run(run())


def test_a_request_without_host_asks_no_resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library would look up the name of this machine, and hold up everything else meanwhile."""

    def refuse(*_: object) -> str:
        raise AssertionError("a name is looked up")

    async def scene(ui: UiServer) -> None:
        for method in (b"GET", b"POST"):
            found = await talk(ui, method + b" /api/v1/config HTTP/1.0\r\nOrigin: http://x\r\n\r\n", seconds=5)
            assert b" 421 " in found.splitlines()[0]

    monkeypatch.setattr(socket, "getfqdn", refuse)
    play(tmp_path, scene)


def test_an_absolute_target_has_no_say(tmp_path: Path) -> None:
    """The host name is that of the header, and two of them are an error."""

    async def scene(ui: UiServer) -> None:
        end = b"Connection: close\r\n\r\n"
        found = await talk(ui, b"GET http://localhost/api/v1/config HTTP/1.1\r\nHost: evil.example\r\n" + end)
        assert b'"version"' not in found
        found = await talk(ui, b"GET /api/v1/config HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n" + end)
        assert b'"version"' not in found

    play(tmp_path, scene)


def test_an_upgrade_is_not_made(tmp_path: Path) -> None:
    """Neither to WebSocket nor to h2c: the request is answered as it is."""

    async def scene(ui: UiServer) -> None:
        for kind in (b"websocket", b"h2c"):
            upgrade = (
                b"Connection: Upgrade\r\nUpgrade: " + kind + b"\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            )
            found = await talk(ui, b"GET /api/v1/config HTTP/1.1\r\n" + HOST + upgrade + b"\r\n", seconds=2)
            assert b" 101 " not in found

    play(tmp_path, scene)


def test_one_client_leaves_room_for_the_live_updates_of_others() -> None:
    """It gets half of the places."""

    async def run() -> None:
        live = LiveUpdates()
        async with live.listen("b"):
            for _ in range(250):
                await live.listen("a").__aenter__()
            assert (True, False) == (live.is_full("a"), live.is_full("b"))
            for number in range(249):
                await live.listen(f"c{number}").__aenter__()
            assert live.is_full("b")

    asyncio.run(run())


def test_a_page_that_never_reads_its_updates_gives_back_its_place(tmp_path: Path) -> None:
    """Within the time that pages have to read."""
    live = LiveUpdates(heartbeat_seconds=0.0001, write_seconds=0.5)

    async def scene(ui: UiServer) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", int(ui.url.rpartition(":")[2]), limit=1024)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\n" + HOST + b"\r\n")
        await writer.drain()
        writer.transport.pause_reading()
        async with asyncio.timeout(120):
            while not live._listeners:
                await asyncio.sleep(0.01)
            while live._listeners:
                live.publish_counts({"fail": 1, "x" * 60_000: 1})
                await asyncio.sleep(0.001)
        writer.close()

    play(tmp_path, scene, live=live)
