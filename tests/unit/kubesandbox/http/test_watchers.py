"""Watchers that disconnect leave no error in the log."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress

import pytest
from aiohttp import web

from kubesandbox import Sandbox, Settings
from kubesandbox.authentication.authenticator import StaticToken
from kubesandbox.http.connections import Connections
from kubesandbox.storage.store import Key
from pyverno.engine.request import User

WATCH = b"GET /api/v1/namespaces/default/configmaps?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n"
TOKENS = (StaticToken("t", User("jane")),)


def test_an_event_for_a_closing_connection_is_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks after an event has woken the watch, which therefore still writes to it."""
    transports: list[asyncio.Transport] = []
    made = Connections.connection_made

    def keep(self: Connections, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        transports.append(transport)
        made(self, handler, transport)

    monkeypatch.setattr(Connections, "connection_made", keep)

    async def play() -> bytes:
        async with Sandbox(Settings(controllers=False, authorization=False, static_tokens=TOKENS)) as sandbox:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            port = int(sandbox.url.rpartition(":")[2])
            transports.clear()
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(WATCH)
            head = await reader.readuntil(b"\r\n")
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
            sandbox.server.store.put(Key("configmaps", "default", "a"), body)
            transports[0].abort()
            with suppress(ConnectionError, ssl.SSLError):
                await reader.read()
            writer.transport.abort()
            return head

    with caplog.at_level(logging.INFO):
        head = asyncio.run(play())
    assert b"HTTP/1.1 200 OK\r\n" == head
    assert [] == [record.message for record in caplog.records if record.levelno >= logging.ERROR]
