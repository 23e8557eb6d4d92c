"""Servers that answer as no server should: each fault is the bytes that a connection gets, or its silence."""

from __future__ import annotations

import asyncio
import gzip
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

__all__ = ["FAULTS", "HARMLESS", "METADATA", "HostilePeer", "hostile_peer"]

METADATA = "169.254.169.254"
_PIECE = b"x" * 65_536
_MOST_SENT = 64 * 1024 * 1024
"""Bytes after which a peer gives up: a client that takes them has no bound."""

Pieces = Callable[[str], Iterator[bytes]]
"""The pieces that a connection is sent, by the address of the peer; an empty piece is silence until the client goes."""


def _ok(body: bytes, *fields: str) -> bytes:
    head = "".join(
        f"{each}\r\n" for each in ("Content-Type: application/json", f"Content-Length: {len(body)}", *fields)
    )
    return b"HTTP/1.1 200 OK\r\n" + head.encode() + b"\r\n" + body


def _redirect(to: str) -> Iterator[bytes]:
    yield f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()


def _endless(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    yield from itertools.repeat(_PIECE)


def _endless_chunks(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    yield from itertools.repeat(b"10000\r\n" + _PIECE + b"\r\n")


def _endless_head(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    yield from (b"X-Field-%d: 1\r\n" % number for number in itertools.count())


def _endless_line(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Field: "
    yield from itertools.repeat(_PIECE)


def _endless_announcements(_: str) -> Iterator[bytes]:
    yield from itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")


def _silent_body(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    yield b""


def _slow_head(_: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    yield b""


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(_MOST_SENT), 1)


def _whole(body: bytes) -> Pieces:
    return lambda _: iter([_ok(body)])


_VALUES: dict[str, Pieces] = {
    "a deep value": _whole(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "equal keys": _whole(b'{"issuer": 1, "issuer": 2, "kind": 1, "kind": 2}'),
    "a number without end": _whole(b'{"kind": ' + b"9" * 100_000 + b"}"),
    "a number beyond all": _whole(b'{"kind": 1e999999}'),
    "bytes that are no text": _whole(b'{"kind": "\xff\xfe"}'),
    "half a character": _whole(b'{"kind": "\\ud800"}'),
    "a list": _whole(b"[[], {}, null]"),
    "no value": _whole(b"null"),
    "no JSON": _whole(b"<html>"),
}

FAULTS: dict[str, Pieces] = {
    "a body without end": _endless,
    "chunks without end": _endless_chunks,
    "header fields without end": _endless_head,
    "a header line without end": _endless_line,
    "announcements without end": _endless_announcements,
    "a redirect to itself": _redirect,
    "a redirect to a metadata service": lambda _: _redirect(f"http://{METADATA}/latest"),
    "a redirect to a file": lambda _: _redirect("file:///etc/hostname"),
    "a redirect to nowhere": lambda _: _redirect("http://[::1"),
    "silence": lambda _: iter([b""]),
    "silence in the head": _slow_head,
    "silence in the body": _silent_body,
    "an encoding that grows": lambda _: iter([_ok(_bomb(), "Content-Encoding: gzip")]),
    "an encoding that is none": lambda _: iter([_ok(b"{}", "Content-Encoding: gzip")]),
    "fewer bytes than its length": lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"]),
    "two lengths": lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"]),
    "a length without end": lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n{}"]),
    "a negative length": lambda _: iter([b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"]),
    "a chunk of no size": lambda _: iter([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"]),
    "nothing": lambda _: iter([]),
    "another protocol": lambda _: iter([b"SSH-2.0-OpenSSH_9.6\r\n"]),
    "a change of the protocol": lambda _: iter([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"]),
    **_VALUES,
}
"""What a peer may answer, by name."""

HARMLESS = frozenset(_VALUES)
"""Those that are answers of HTTP, whatever their bodies are worth."""


@dataclass
class HostilePeer:
    """A peer that is listening: its address, how many connections it had, and the most bytes that one of them took."""

    url: str = ""
    connections: int = 0
    taken: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)


@asynccontextmanager
async def hostile_peer(pieces: Pieces, most: int = _MOST_SENT) -> AsyncIterator[HostilePeer]:
    """Send the pieces on 127.0.0.1 to each connection, `most` bytes at most."""
    peer = HostilePeer()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        peer._open.add(writer)
        sent = 0
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces(peer.url):
                if not piece:
                    await reader.read()
                    break
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                peer.taken = max(peer.taken, sent)
                if sent > most:
                    break
        writer.close()
        peer._open.discard(writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield peer
    finally:
        server.close()
        for writer in tuple(peer._open):
            writer.transport.abort()
        await asyncio.sleep(0)
