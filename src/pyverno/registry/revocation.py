"""Reads OCSP responders and revocation lists that trusted certificates name, without credentials or redirects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from pyverno.errors import HostError
from pyverno.images.verification.revocation import MAX_ANSWER, current_until
from pyverno.registry.cache import SingleFlight
from pyverno.registry.transport import Transport

__all__ = ["RevocationClient"]

_MAX_KEPT: Final = 64
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_SECONDS: Final = 3600
_Key = tuple[str, bytes]


class RevocationClient:
    """Fetches responses and keeps them while they are current, an hour at most; belongs to one event loop."""

    def __init__(self, transport: Transport, clock: Callable[[], float] = time.time) -> None:
        """Take what sends requests."""
        self._transport = transport
        self._clock = clock
        self._kept: dict[_Key, tuple[bytes, float]] = {}
        self._running: SingleFlight[_Key, bytes] = SingleFlight()

    async def read(self, url: str, request: bytes, deadline: float | None = None) -> bytes:
        """Return the answer to an OCSP request, or the list for an empty one; raises HostError.

        `deadline` (monotonic clock) limits this caller only; others may wait longer for the same response.
        """
        kept = self._kept.get((url, request))
        if kept is not None and self._clock() < kept[1]:
            return kept[0]
        try:
            async with asyncio.timeout(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                return await self._running.do((url, request), lambda: self._fetch(url, request))
        except TimeoutError:
            raise HostError("no answer before the deadline") from None

    async def close(self) -> None:
        """Cancel the pending requests."""
        await self._running.close()

    async def _fetch(self, url: str, request: bytes) -> bytes:
        kind = "application/ocsp-request" if request else ""
        answer = await self._transport.fetch(url, request, kind, MAX_ANSWER)
        if answer.status != 200:
            raise HostError(f"the server answers {answer.status}")
        now = self._clock()
        ends = min(current_until(answer.body, request), now + _MAX_SECONDS)
        if ends > now:
            self._keep((url, request), answer.body, ends)
        return answer.body

    def _keep(self, key: _Key, body: bytes, ends: float) -> None:
        size = len(body) + sum(len(kept) for kept, _ in self._kept.values())
        if len(self._kept) >= _MAX_KEPT or size > _MAX_BYTES:
            self._kept.clear()
        self._kept[key] = (body, ends)
