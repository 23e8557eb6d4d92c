"""A proxy between a controller and a sandbox that makes single resources unavailable: refused, gone, away, silent.

This module must never change the data that pass through it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum

from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.kube.status import StatusError
from tests.support.apiserver import status
from tests.support.servers import listening

__all__ = ["FaultyProxy", "Trouble", "proxied"]


class Trouble(Enum):
    """The failure of requests for a collection."""

    REFUSED = (403, "Forbidden")
    GONE = (404, "NotFound")
    CONFLICT = (409, "Conflict")
    EXPIRED = (410, "Expired")
    AWAY = (503, "ServiceUnavailable")
    SILENT = (0, "takes the request and never answers")


class FaultyProxy:
    """Forwards to an API server; `trouble` makes a path unavailable until `mend` restores it."""

    def __init__(self, upstream: Client) -> None:
        self._upstream = upstream
        self._troubles: dict[str, Trouble] = {}
        self._watches: dict[str, set[asyncio.Task[None]]] = {}

    def trouble(self, path: str, trouble: Trouble) -> None:
        """Make a path unavailable, and cut off its watches."""
        self._troubles[path] = trouble
        for watching in self._watches.pop(path, ()):
            watching.cancel()

    def mend(self, path: str) -> None:
        """Make a path available again."""
        del self._troubles[path]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        trouble = self._troubles.get(request.path)
        if trouble is Trouble.SILENT:
            await asyncio.sleep(30)
        if trouble is not None:
            return status(*trouble.value)
        try:
            if request.query.get("watch"):
                return await self._watch(request)
            body = await request.read()
            answer = await self._upstream.request(
                request.method,
                request.path,
                query=dict(request.query),
                body=json.loads(body) if body else None,
                content_type=request.content_type,
                accept=request.headers.get("Accept", "application/json"),
            )
        except StatusError as error:
            return web.json_response(error.to_json(), status=error.status)
        return web.json_response(answer)

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()

        async def forward() -> None:
            await response.prepare(request)
            async for event in self._upstream.stream(request.path, query=dict(request.query)):
                with suppress(ConnectionResetError):  # the client has disconnected, and the watch with it
                    await response.write(json.dumps(event).encode() + b"\n")

        forwarding = asyncio.create_task(forward())
        self._watches.setdefault(request.path, set()).add(forwarding)
        try:
            await asyncio.wait([forwarding])
        finally:
            forwarding.cancel()
            self._watches.get(request.path, set()).discard(forwarding)
        if not forwarding.cancelled() and (error := forwarding.exception()) is not None:
            raise error
        return response


@asynccontextmanager
async def proxied(upstream: Client) -> AsyncIterator[tuple[FaultyProxy, Client]]:
    """Run a proxy in front of an API server, and a client of it."""
    proxy = FaultyProxy(upstream)
    async with (
        listening(proxy.handle) as port,
        Client(Access(f"http://127.0.0.1:{port}"), qps=0) as client,
    ):
        yield proxy, client
