"""A webhook server that stays up while its policies are swapped, and one connection to it that stays open.

Starting a server and shaking hands cost more than a hundred reviews. This module must never look into an answer.
"""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from pyverno.engine.host import NO_HOST, Host
from pyverno.webhook.nonblocking import NonblockingHost
from pyverno.webhook.server import Limits
from tests.support.webhookserver import MemoryWorld, Recorded, make_certificate, make_server

__all__ = ["StandingServer", "standing_server"]

_T = TypeVar("_T")
_HEADERS = {"Content-Type": "application/json"}
_LIMITS = Limits(idle_seconds=3600.0)


class StandingServer:
    """Answers over HTTPS in a thread of its own; `asked` counts the requests of its whole life."""

    def __init__(self) -> None:
        """Start the loop, the server and the connection; they last as long as the process."""
        certificate = make_certificate()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="webhook").start()
        self._recorded = Recorded()
        self._server = make_server(
            certificate, cluster=MemoryWorld(), host=NO_HOST, observer=self._recorded, limits=_LIMITS
        )
        self._run(self._server.start("127.0.0.1", 0))
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", self._server.port, context=certificate.client_context()
        )
        self.asked = 0

    def judge_by(self, world: MemoryWorld, host: Host) -> Recorded:
        """Swap what the next requests are judged by; returns where their answers are noted."""
        self._recorded = Recorded()

        async def swap() -> None:
            self._server._cluster = world
            self._server._host = host
            self._server._inline = NonblockingHost(host)
            self._server._observer = self._recorded

        self._run(swap())
        return self._recorded

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Return code and body of one request."""
        self.asked += 1
        self._connection.request("POST", path, body, _HEADERS)
        reply = self._connection.getresponse()
        return reply.status, reply.read()

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)


@cache
def standing_server() -> StandingServer:
    """Return the one server of this process."""
    return StandingServer()
