"""Answers on lean connections, held against the parser of aiohttp: what one accepts the other reads in the same way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import Final

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpResponseParser
from aiohttp.http_exceptions import HttpProcessingError

from pyverno.cluster.channels import ReplyReader
from tests.property.profile import examples

BODY: Final = b'{"kind": "Status", "code": 201}'
ANSWERS: Final = (
    b"HTTP/1.1 201 Created\r\nContent-Length: 31\r\nDate: now\r\n\r\n" + BODY,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n" + BODY + b"\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\nA\r\n0123456789\r\n0\r\nTrailer: a\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n" + BODY,
    b"HTTP/1.1 204 No Content\r\n\r\n",
)
PIECES: Final = (
    b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b";", b"0", b"1", b"-1", b"+", b"0x", b"f", b"99999999999", b",",
    b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"content-length:31\r\n", b" folded\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/2 200\r\n", b"Connection: close\r\n",
    b"\xff",
)  # fmt: skip


def mutated(random: Random) -> bytes:
    """Return an answer with some bytes taken out, doubled, or put in."""
    data = random.choice(ANSWERS)
    for _ in range(random.randint(0, 3)):
        at = random.randint(0, len(data))
        end = min(at + random.choice((0, 1, 2, 8)), len(data))
        middle = random.choice((b"", data[at:end] * 2, random.choice(PIECES)))
        data = data[:at] + middle + data[end:]
    return data


def own(data: bytes, size: int) -> tuple[int, bytes] | None:
    """Return status and body as the lean connection reads them from pieces; None for what it refuses."""
    reader = ReplyReader(4096)
    with suppress(ConnectionError):
        for start in range(0, len(data), size):
            if (found := reader.feed(data[start : start + size])) is not None:
                return found.status, found.body
        if (found := reader.end()) is not None:
            return found.status, found.body
    return None


async def oracle(data: bytes) -> tuple[int, bytes] | None:
    """Return status and body of the first answer as aiohttp reads them; None for what it refuses."""
    loop = asyncio.get_running_loop()
    parser = HttpResponseParser(BaseProtocol(loop), loop, 4096, read_until_eof=True, auto_decompress=False)
    messages = []
    try:
        # byte by byte: what follows the first answer must not spoil it
        for start in range(len(data)):
            messages += parser.feed_data(data[start : start + 1])[0]
            for head, body in messages:
                if head.code >= 200 and body.is_eof():
                    return head.code, b"".join(body._buffer)
        parser.feed_eof()
    except HttpProcessingError:
        return None
    for head, body in messages:
        if head.code >= 200 and body.is_eof() and body.exception() is None:
            return head.code, b"".join(body._buffer)
    return None


def test_what_is_accepted_is_what_the_parser_of_aiohttp_reads() -> None:
    """Never another length, another chunk or another status; the strict reader may refuse more."""

    async def run() -> tuple[list[object], int]:
        random, wrong, accepted = Random(7), [], 0  # noqa: S311
        for _ in range(examples(4_000)):
            data = mutated(random)
            found = own(data, random.choice((1, 3, 4096)))
            if found is None:
                continue
            accepted += 1
            expected = await oracle(data)
            if found != expected:
                wrong.append((data, found, expected))
        return wrong, accepted

    wrong, accepted = asyncio.run(run())
    assert [] == wrong
    assert accepted > 1_000


def test_every_answer_reads_the_same_in_any_pieces() -> None:
    """The borders between the pieces of a body carry no meaning."""
    random = Random(11)  # noqa: S311
    differing = []
    for _ in range(examples(4_000)):
        data = mutated(random)
        found = {size: own(data, size) for size in (1, 2, 7, 4096)}
        if len(set(found.values())) > 1:
            differing.append((data, found))
    assert [] == differing
