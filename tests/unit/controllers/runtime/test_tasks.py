"""Tasks of a controller: when one ends by itself, all end."""

from __future__ import annotations

import asyncio

import pytest

from pyverno.controllers.runtime.tasks import Tasks
from pyverno.errors import HostError


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _break() -> None:
    raise ValueError("nothing to be done")


async def _end() -> None:
    return


def test_tasks_run_until_the_stop_event() -> None:
    """They are then cancelled without an error."""

    async def play() -> None:
        parts, stop = Tasks(), asyncio.Event()
        part = parts.start(_for_ever())
        waiting = asyncio.create_task(parts.wait(stop))
        await asyncio.sleep(0)
        assert not waiting.done()
        stop.set()
        await waiting
        await parts.end()
        assert part.cancelled()
        parts.check()

    asyncio.run(play())


@pytest.mark.parametrize(("work", "reason"), [(_break, "nothing to be done"), (_end, "it had nothing more to do")])
def test_a_task_that_ends_by_itself_ends_all(work: object, reason: str) -> None:
    """The error holds the reason, if there is one."""
    assert callable(work)

    async def play() -> None:
        parts = Tasks()
        parts.start(_for_ever())
        parts.start(work())
        await parts.wait(asyncio.Event())
        await parts.end()
        with pytest.raises(HostError, match=reason):
            parts.check()

    asyncio.run(play())
