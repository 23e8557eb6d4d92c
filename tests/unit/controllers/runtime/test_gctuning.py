"""Long-lived objects are frozen in the garbage collector, and thawed when the rounds end."""

from __future__ import annotations

import asyncio
import gc
import weakref

from pyverno.controllers.runtime.gctuning import keep_collections_short


def test_rounds_end_with_everything_as_it_was() -> None:
    """Rounds freeze objects while they run; cancelling them restores the collector."""

    async def work() -> int:
        rounds = asyncio.ensure_future(keep_collections_short())
        await asyncio.sleep(0)
        found = gc.get_freeze_count()
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
        return found

    assert asyncio.run(work()) > 1000
    assert gc.get_freeze_count() == 0


class Ring:
    """An object in a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_before_objects_are_set_aside() -> None:
    """A cycle that became garbage between two rounds is freed by the next one."""

    async def work() -> weakref.ref[Ring]:
        rounds = asyncio.ensure_future(keep_collections_short(0))
        await asyncio.sleep(0)
        garbage = weakref.ref(Ring())
        for _ in range(3):
            await asyncio.sleep(0)
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
        return garbage

    gc.disable()
    try:
        assert asyncio.run(work())() is None
    finally:
        gc.enable()
