"""I9, L6: what a connection takes before anything of it counts as a body: a client must not choose it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.webhook.server import Limits
from tests.support.webhookserver import make_certificate, make_server

_CONNECTIONS: Final = 150
_KIB_OF_ONE: Final = 200
_BODY: Final = 250_000
_HEAD: Final = b"POST /%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_REVIEW: Final = (
    b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",'
    b'"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},'
    b'"userInfo":{},"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}}}'
)

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")


async def _serve() -> None:
    """Serve until the standard input ends; a review at `/wait` never ends."""

    async def wait(_: AdmissionRequest) -> AdmissionResponse:
        await asyncio.Event().wait()
        raise AssertionError

    certificate = make_certificate()
    limits = Limits(bytes_in_work=2**30, handshake_seconds=600, head_seconds=600, body_seconds=600)
    server = make_server(certificate, limits=limits, special={"/wait": wait})
    await server.start("127.0.0.1", 0)
    print(server.port, base64.b64encode(certificate.certificate).decode(), flush=True)
    await asyncio.to_thread(sys.stdin.read)


@contextlib.asynccontextmanager
async def _server() -> AsyncIterator[tuple[int, int, ssl.SSLContext]]:
    """Yield process id, port and client context of a server in a process of its own."""
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # as that of this process
    command = (sys.executable, "-m", "tests.security.test_connection_memory")
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=pipe, stdout=pipe)
    try:
        assert process.stdout is not None
        port, certificate = (await process.stdout.readline()).split()
        context = ssl.create_default_context(cadata=base64.b64decode(certificate).decode())
        yield process.pid, int(port), context
    finally:
        process.kill()
        await process.communicate()


async def _say_nothing(_connect: Connect) -> None:
    """Take part in no handshake at all."""


async def _stop_within_a_body(connect: Connect) -> None:
    _, writer = await connect()
    writer.write(_HEAD % (b"validate/fail", _BODY + 1) + b" " * _BODY)
    await writer.drain()


async def _stay_after_an_answer(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(_HEAD % (b"validate/fail", _BODY) + b" " * (_BODY - len(_REVIEW)) + _REVIEW)
    assert b"200 OK" in await reader.readline()


async def _send_more_while_a_review_is_in_work(connect: Connect) -> None:
    _, writer = await connect()
    writer.write(_HEAD % (b"wait", len(_REVIEW)) + _REVIEW + _HEAD % (b"validate/fail", _BODY) + b" " * (_BODY - 1))
    # what the server does not take stays here


def _resident(process: int) -> int:
    """Return the memory of a process in KiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


@pytest.mark.parametrize(
    ("act", "counted"),
    [
        (_say_nothing, 0),
        (_stop_within_a_body, _BODY),
        (_stay_after_an_answer, 0),
        (_send_more_while_a_review_is_in_work, 0),
    ],
)
def test_a_connection_takes_little_memory_beside_the_bodies_that_count(
    act: Callable[[Connect], Awaitable[None]], counted: int
) -> None:
    """2,000 connections with 600 KiB of buffers each are more than a replica may have, whatever they have sent."""

    async def run() -> None:
        async with _server() as (process, port, context):
            held: list[asyncio.StreamWriter] = []

            async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
                tls = None if act is _say_nothing else context
                reader, writer = await asyncio.open_connection("localhost", port, ssl=tls)
                held.append(writer)
                return reader, writer

            async def one() -> None:
                await act(connect)
                if act is _say_nothing:
                    await connect()

            await one()  # what is loaded on first use
            before = _resident(process)
            for _ in range(_CONNECTIONS // 10):
                await asyncio.gather(*(one() for _ in range(10)))
            await asyncio.sleep(1)
            grown = (_resident(process) - before) / _CONNECTIONS
            for writer in held:
                writer.transport.abort()
            # a body that grows has up to an eighth in reserve
            assert grown < _KIB_OF_ONE + counted * 9 / 8 / 1024

    asyncio.run(run())


if __name__ == "__main__":
    asyncio.run(_serve())
