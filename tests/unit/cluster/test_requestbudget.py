"""A rate limit of requests: a burst first, then a steady rate."""

from __future__ import annotations

import asyncio
import time

from pyverno.cluster.requestbudget import RequestBudget


def test_the_budget_spreads_requests() -> None:
    """The rate is in requests a second; 0 disables the limit."""

    async def seconds(qps: float, burst: int, count: int) -> float:
        budget = RequestBudget(qps, burst)
        began = time.monotonic()
        async with asyncio.timeout(60):
            for _ in range(count):
                await budget.take()
        return time.monotonic() - began

    asyncio.run(seconds(0.001, 5, 5))  # a sixth request would wait for 1000 seconds
    assert asyncio.run(seconds(20, 5, 9)) >= 0.19
    asyncio.run(seconds(0, 1, 1000))
