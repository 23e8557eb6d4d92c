"""Connections for writes: responses in any pieces, malformed responses, and reuse of connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest

from pyverno.cluster.channels import Channels, Reply, ReplyReader, request_head

PLAIN = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nDate: now\r\n\r\n{}"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nA;x=1\r\n0123456789\r\n0\r\nTrailer: a\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PLAIN, (201, b"{}")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN, (201, b"{}")),
        (CHUNKED, (200, b"{}0123456789")),
        (CHUNKED.replace(b"Trailer: a\r\n", b""), (200, b"{}0123456789")),
        (b"HTTP/1.1 204 No Content\r\n\r\n", (204, b"")),
    ],
)
def test_an_answer_may_come_in_any_pieces(data: bytes, expected: tuple[int, bytes], size: int) -> None:
    """It is complete with its last byte, and not before."""
    reader = ReplyReader(100)
    found = [reader.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert [None] * (len(found) - 1) == found[:-1]
    assert isinstance(found[-1], Reply)
    assert expected == (found[-1].status, found[-1].body)
    assert not reader.is_last


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    """Closing the connection completes it, but truncates a response that gives its length."""
    reader, cut = ReplyReader(100), ReplyReader(100)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nab") is None
    assert cut.feed(PLAIN[:-1]) is None
    assert Reply(200, {}, b"ab") == reader.end()
    assert cut.end() is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0 x\r\n\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 2000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 101,
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
    ],
)
def test_bytes_that_are_no_answer_are_refused(data: bytes) -> None:
    """Cases are wrong framing, two lengths, and sizes beyond the limits."""
    with pytest.raises(ConnectionError):
        ReplyReader(100).feed(data)


def test_a_head_holds_no_line_break_of_a_value() -> None:
    """A path is quoted; a header with a line break is refused."""
    assert request_head("POST", "http://api", "/a b\r\nc", ()) == b"POST /a%20b%0D%0Ac HTTP/1.1\r\nHost: api\r\n"
    with pytest.raises(OSError, match="line break"):
        request_head("POST", "http://api", "/", (("Authorization", "a\r\nb: c"),))


def test_connections_are_used_again_until_one_is_not_to_be() -> None:
    """Consecutive requests share a connection; `Connection: close` or surplus bytes lead to a new one."""
    answers = [PLAIN, PLAIN, PLAIN.replace(b"Date: now", b"Connection: x, Close"), PLAIN + b"surplus", PLAIN]

    async def run() -> list[int]:
        connections: list[int] = []
        count = 0
        closed = asyncio.Semaphore(0)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            count += 1
            number = count
            with suppress(ConnectionError):
                while await reader.readline():
                    await reader.readuntil(b"\r\n\r\n")
                    connections.append(number)
                    writer.write(answers[len(connections) - 1])
            writer.close()
            closed.release()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        channels = Channels(f"http://127.0.0.1:{port}", prepare=_leave)
        head = request_head("POST", f"http://127.0.0.1:{port}", "/", ()) + b"Content-Length: 0\r\n\r\n"
        for _ in answers:
            assert 201 == (await channels.exchange(head, None, 100)).status
        channels.close()
        for _ in range(count):
            await closed.acquire()
        server.close()
        return connections

    assert [1, 1, 1, 2, 3] == asyncio.run(run())


def test_a_connection_that_ends_without_an_answer_is_an_error() -> None:
    """The request is not repeated, because the server may have performed it."""

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ConnectionError, match="before it answered"):
            await Channels(address, prepare=_leave).exchange(request_head("POST", address, "/", ()) + b"\r\n", None, 9)
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("server", ["https://api:port", "ftp://api", "api:6443"])
def test_an_invalid_address_fails_the_request_alone(server: str) -> None:
    """The address is parsed only when a request is sent."""
    channels = Channels(server, prepare=_leave)
    with pytest.raises(OSError, match="not a URL"):
        asyncio.run(channels.exchange(b"", None, 9))


def _leave(_: socket.socket) -> None:
    """Leave the socket unchanged."""
