"""The limit of requests of one client, as the flags `clientRateLimitQPS` and `clientRateLimitBurst` set it."""

from __future__ import annotations

import asyncio
import time

__all__ = ["RequestBudget"]


class RequestBudget:
    """A limit of requests: `burst` at once, then `qps` each second; 0 for no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        """Take the two limits, in requests and requests per second."""
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._then = time.monotonic()

    async def take(self) -> None:
        """Wait until one more request may be sent."""
        if not self._qps:
            return
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._then) * self._qps) - 1
        self._then = now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._qps)
