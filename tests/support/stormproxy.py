"""A proxy between a controller and an API server that breaks random requests: refused, answered late, or lost.

A lost response is the worst: the server has performed the request, and the client cannot tell. Leases pass, so that a
storm does not only test elections. This module must never change the data that pass through it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from tests.support.apiserver import status
from tests.support.faultyproxy import FaultyProxy
from tests.support.servers import listening

__all__ = ["StormProxy", "stormy"]

_REFUSALS: Final = ((409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"))
_WATCH_SECONDS: Final = (0.2, 1.5)


class StormProxy(FaultyProxy):
    """Breaks a share of the requests during a storm; `is_away` refuses all of them."""

    def __init__(self, upstream: Client, seed: int, share: float) -> None:
        super().__init__(upstream)
        self._chance = Random(seed)  # noqa: S311 - a test that can be repeated
        self._share = share
        self.is_away = False
        self.broken = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Forward one request, or break it."""
        if self.is_away:
            self.broken += 1
            return status(503, "ServiceUnavailable")
        if "/leases" in request.path or self._chance.random() >= self._share:
            return await super().handle(request)
        self.broken += 1
        if request.query.get("watch"):
            return await self._end_soon(request)
        if self._chance.random() < 0.3:
            await super().handle(request)  # performed, but the response is lost
            return status(504, "Timeout")
        return status(*self._chance.choice(_REFUSALS))

    async def _end_soon(self, request: web.BaseRequest) -> web.StreamResponse:
        """End a watch at once, or in the middle."""
        if self._chance.random() < 0.5:
            return status(410, "Expired")
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(self._chance.uniform(*_WATCH_SECONDS))
        gone = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
        await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
        return response


@asynccontextmanager
async def stormy(upstream: Client, seed: int, share: float) -> AsyncIterator[tuple[StormProxy, Access]]:
    """Run a proxy in front of an API server; yield it with the access of its clients."""
    proxy = StormProxy(upstream, seed, share)
    async with listening(proxy.handle) as port:
        yield proxy, Access(f"http://127.0.0.1:{port}")
