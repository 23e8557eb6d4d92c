"""The release of memory: after a mass deletion, when it has paused."""

from __future__ import annotations

import asyncio

from kubesandbox.storage.memoryrelease import MemoryRelease, trim_heap


def test_a_mass_deletion_trims_the_heap_twice() -> None:
    """After the deletion, and after its answer; further deletions begin anew."""
    trims: list[int] = []

    async def delete() -> list[int]:
        memory = MemoryRelease(lambda: trims.append(len(trims)), least_bytes=100, pause=0.0)
        seen = []
        for _ in range(2):
            for _ in range(3):
                memory.note(50)
            while memory.is_due:
                await asyncio.sleep(0)
            seen.append(len(trims))
        return seen

    assert [2, 4] == asyncio.run(delete())


def test_the_heap_is_not_trimmed_while_objects_are_deleted() -> None:
    """What was deleted since the timer began starts it again."""
    trims: list[int] = []

    async def delete() -> tuple[int, int]:
        memory = MemoryRelease(lambda: trims.append(len(trims)), least_bytes=100, pause=0.0)
        memory.note(100)
        for _ in range(5):
            memory.note(20)
            await asyncio.sleep(0)
        during = len(trims)
        while memory.is_due:
            await asyncio.sleep(0)
        return during, len(trims)

    assert (0, 2) == asyncio.run(delete())


def test_a_trickle_of_deletions_does_not_put_the_trim_off() -> None:
    """Controllers delete an object now and then."""
    trims: list[int] = []

    async def delete() -> int:
        memory = MemoryRelease(lambda: trims.append(len(trims)), least_bytes=100, pause=0.0)
        memory.note(100)
        while memory.is_due:
            memory.note(1)
            await asyncio.sleep(0)
        return len(trims)

    assert 2 == asyncio.run(delete())


def test_few_deletions_and_a_stopped_sandbox_trim_nothing() -> None:
    """A trim walks through the whole heap."""
    trims: list[int] = []

    async def delete() -> list[int]:
        few = MemoryRelease(lambda: trims.append(1), least_bytes=100, pause=0.0)
        few.note(99)
        stopped = MemoryRelease(lambda: trims.append(2), least_bytes=100, pause=0.0)
        stopped.note(100)
        stopped.close()
        return [few.is_due, stopped.is_due]

    assert ([False, False], []) == (asyncio.run(delete()), trims)


def test_the_heap_can_be_trimmed_at_any_time() -> None:
    """Where the C library cannot do that, nothing happens."""
    trim_heap()
