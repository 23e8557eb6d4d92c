"""A session that is closed leaves no connection behind, whatever its server does."""

from __future__ import annotations

import ast
import asyncio
import gc
import socket
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

import aiohttp
import pytest

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.connector import Connector
from pyverno.errors import HostError
from tests.support.webhookserver import make_certificate

_CERTIFICATE = make_certificate()
_BEGINNING = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(_CERTIFICATE.key + _CERTIFICATE.certificate)
        file.flush()
        context.load_cert_chain(file.name)
    return context


@contextmanager
def silent_server(*, tls: bool) -> Iterator[str]:
    """Run a server that begins an answer on each connection, and neither reads nor closes it afterwards."""
    context = None
    if tls:
        context = _server_context()

    def serve() -> None:
        with ExitStack() as connections, suppress(OSError):
            while True:
                connection = connections.enter_context(listening.accept()[0])
                if context is not None:
                    connection = connections.enter_context(context.wrap_socket(connection, server_side=True))
                connection.recv(65536)
                connection.sendall(_BEGINNING)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://localhost:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def _watch(url: str) -> None:
    """Watch with the client of clusters until the first event."""
    async with Client(Access(url, ca=_CERTIFICATE.certificate), qps=0) as client:
        watching = client.stream("/api/v1/pods")
        await anext(watching)
        await watching.aclose()


async def _leave_answers(url: str) -> None:
    """Leave three answers in the middle, each on its connection."""
    async with aiohttp.ClientSession(connector=Connector(ssl=_CERTIFICATE.client_context())) as session:
        for _ in range(3):
            async with session.get(url) as reply:
                await reply.content.readany()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("use", [_watch, _leave_answers])
def test_answers_that_were_left_leave_no_socket(use: Callable[[str], Awaitable[None]], tls: bool) -> None:
    """The server never agrees to the end of TLS; a socket that is still open would be a warning."""
    with silent_server(tls=tls) as url:
        asyncio.run(use(url))  # type: ignore[arg-type]  # both are coroutine functions
        gc.collect()


def test_every_session_of_ours_has_such_connections() -> None:
    """A session without a connector makes connections of aiohttp, which it forgets."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted((Path(__file__).parents[2] / "src").rglob("*.py"))
        if "ClientSession(" in (text := path.read_text(encoding="utf-8")) or "TCPConnector" in text
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.Attribute) and node.attr == "TCPConnector")
        or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("ClientSession")
            and "connector" not in {each.arg for each in node.keywords}
        )
    ]
    assert ["connector.py"] == [each.partition(":")[0] for each in found]


def test_a_connection_that_the_server_ends_is_forgotten() -> None:
    """A session that lives long holds no more than its open connections."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def run() -> int:
        connector = Connector()
        server = await asyncio.start_server(respond, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, aiohttp.ClientSession(connector=connector) as session:
            for _ in range(3):
                async with session.get(url):
                    pass
            async with asyncio.timeout(60):
                while connector._transports:
                    await asyncio.sleep(0)
            return len(connector._transports)

    assert 0 == asyncio.run(run())


async def _fault(url: str) -> str:
    """Return the text of a request and of a watch that cannot be sent."""
    texts = []
    async with Client(Access(url, ca=make_certificate("other").certificate), qps=0) as client:
        for send in (lambda: client.request("GET", "/api"), lambda: anext(client.stream("/api"))):
            with pytest.raises(HostError) as raised:
                await send()
            texts.append(raised.value.message)
    asked, watched = texts
    place = url.rpartition("@")[2].rpartition("/")[2]
    start = f"the API server `{place}` cannot be reached for `GET /api`: "
    assert [True, f"the watch of `/api` broke off: {asked.removeprefix(start)}"] == [asked.startswith(start), watched]
    return asked.removeprefix(start)


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://127.0.0.1:9", "connection refused"),
        ("http://127.0.0.1:9", "connection refused"),
        ("http://user:pw@127.0.0.1:9", "connection refused"),
        ("https://nobody.invalid:9", "the name of the host cannot be resolved"),
    ],
)
def test_an_api_server_that_cannot_be_reached_is_named_with_the_reason(url: str, fault: str) -> None:
    """A line of a log held the address of an object of Python, which differed each time."""
    assert fault == asyncio.run(_fault(url))


@pytest.mark.parametrize(
    ("url", "speaks_tls", "fault"),
    [
        ("https://127.0.0.1:{}", True, "the certificate cannot be verified: self-signed certificate"),
        ("https://127.0.0.1:{}", False, "TLS failed: wrong version number"),
        ("http://127.0.0.1:{}", True, "the server closed the connection"),
    ],
)
def test_a_server_of_another_kind_is_told_from_none(url: str, *, speaks_tls: bool, fault: str) -> None:
    """A wrong authority and a wrong scheme are the common mistakes in a kubeconfig."""

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if not speaks_tls:
                await reader.read(1)
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()
            await writer.wait_closed()

    async def run() -> str:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=_server_context() if speaks_tls else None)
        async with server:
            return await _fault(url.format(server.sockets[0].getsockname()[1]))

    assert fault == asyncio.run(run())
