"""A server that stops closes every connection: one in its TLS handshake, and one whose client does not answer."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
from contextlib import ExitStack

from kubesandbox import Sandbox, Settings
from kubesandbox.authentication.authenticator import StaticToken
from pyverno.engine.request import User


def test_a_connection_that_is_made_while_the_server_stops_is_dropped() -> None:
    """A leak would be a warning, which fails the test."""

    async def play() -> bytes:
        async with Sandbox(Settings(controllers=False)) as sandbox:
            port = int(sandbox.url.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.sleep(0)
            stopping = asyncio.ensure_future(sandbox.stop())
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            try:
                async with asyncio.timeout(60):
                    await writer.start_tls(context)
                    return await reader.read()
            except (ConnectionError, ssl.SSLError):
                return b""
            finally:
                await stopping
                writer.close()

    assert b"" == asyncio.run(play())
    gc.collect()


def test_watches_of_clients_that_do_not_answer_are_closed() -> None:
    """TLS ends when both sides agree, and these clients never read again; a leak would be a warning."""
    watch = b"GET /api/v1/configmaps?watch=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n\r\n"
    token = StaticToken("secret", User("ann", groups=("system:masters",)))
    with ExitStack() as connections:
        with Sandbox(Settings(controllers=False, static_tokens=(token,))) as sandbox:
            port = int(sandbox.url.rpartition(":")[2])
            context = ssl.create_default_context(cadata=sandbox.certificate.decode())
            for _ in range(3):
                raw = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=300))
                client = connections.enter_context(context.wrap_socket(raw, server_hostname="127.0.0.1"))
                client.sendall(watch)
                assert b"HTTP/1.1 200 OK" == client.recv(15)
        gc.collect()
