"""What stays is set aside from collections of garbage, and comes back when the rounds end."""

from __future__ import annotations

import asyncio
import gc

from pyverno.controllers.runtime.gctuning import keep_collections_short


def test_rounds_end_with_everything_as_it_was() -> None:
    """While they run objects are set aside; who cancels them has the collector of before."""

    async def work() -> int:
        rounds = asyncio.ensure_future(keep_collections_short())
        await asyncio.sleep(0)
        found = gc.get_freeze_count()
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
        return found

    assert asyncio.run(work()) > 1000
    assert gc.get_freeze_count() == 0
