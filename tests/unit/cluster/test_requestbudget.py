"""A burst of requests at once, and the rest at the rate of the limit."""

from __future__ import annotations

import asyncio
import time

from pyverno.cluster.requestbudget import RequestBudget


def test_the_budget_spreads_requests() -> None:
    """A burst at once, then so many a second; 0 is no limit."""

    async def seconds(qps: float, burst: int, count: int) -> float:
        budget = RequestBudget(qps, burst)
        began = time.monotonic()
        for _ in range(count):
            await budget.take()
        return time.monotonic() - began

    assert asyncio.run(seconds(20, 5, 5)) < 0.1
    assert asyncio.run(seconds(20, 5, 9)) >= 0.19
    assert asyncio.run(seconds(0, 1, 1000)) < 0.1
