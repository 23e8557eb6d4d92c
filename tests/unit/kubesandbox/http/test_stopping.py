"""A server that stops closes every connection, even one in its TLS handshake."""

from __future__ import annotations

import asyncio
import gc
import ssl

from kubesandbox import Sandbox, Settings


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
