"""Clients that only reach the port: connections that are gone keep no memory."""

from __future__ import annotations

import asyncio
import gc
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable

from pyverno.webhook.server import Limits, WebhookServer
from tests.support.webhookserver import make_certificate, make_server

CERTIFICATE = make_certificate()
HEALTH = b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n"

Scene = Callable[[WebhookServer], Awaitable[None]]


def _play(scene: Scene, limits: Limits) -> None:
    async def run() -> None:
        server = make_server(CERTIFICATE, limits=limits)
        await server.start("127.0.0.1", 0)
        try:
            await scene(server)
        finally:
            await server.stop()

    asyncio.run(run())


async def _open(server: WebhookServer, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("localhost", server.port, ssl=context)


def _of_server() -> list[object]:
    """Return the connections and TLS of the server that are in memory, without a garbage collection."""
    return [each for each in gc.get_objects() if _is_of_server(each)]


def _is_of_server(each: object) -> bool:
    return type(each).__name__ == "_Connection" or (type(each) is SSLProtocol and each._server_side)


def test_a_connection_that_is_gone_keeps_no_memory() -> None:
    """A limit of connections counts open ones: closed ones had kept 280 KiB each until their first head was due."""

    async def scene(server: WebhookServer) -> None:
        for ask in (b"", HEALTH):
            for _turn in range(3):
                reader, writer = await _open(server, CERTIFICATE.client_context())
                writer.write(ask)
                assert not ask or b"200 OK" in await reader.readline()
                writer.transport.abort()
        async with asyncio.timeout(60):
            while _of_server():
                await asyncio.sleep(0.02)

    _play(scene, Limits(head_seconds=600, handshake_seconds=600))
