"""Parallel reads with a bounded number at a time."""

from __future__ import annotations

import asyncio

import pytest

from pyverno.errors import HostError, NotFoundError
from pyverno.registry.parallel import AT_ONCE, read_all, read_each


def test_a_bounded_number_of_reads_runs_at_the_same_time() -> None:
    """Each read waits until as many run as may; no other begins before one of them ends."""

    async def run() -> tuple[list[int], int]:
        together, running, most = asyncio.Barrier(AT_ONCE), 0, 0

        async def read(number: int) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            async with together:
                pass
            running -= 1
            return number

        found = await read_each([lambda number=number: read(number) for number in range(3 * AT_ONCE)])
        return [each for each in found if isinstance(each, int)], most

    assert asyncio.run(run()) == (list(range(3 * AT_ONCE)), AT_ONCE)


def test_the_error_of_one_read_takes_its_place() -> None:
    """Other reads continue; `read_all` raises the first error instead."""

    async def good() -> int:
        return 1

    async def bad() -> int:
        raise NotFoundError("there is no such image")

    found = asyncio.run(read_each([good, bad, good]))
    assert [getattr(each, "message", each) for each in found] == [1, "there is no such image", 1]
    with pytest.raises(NotFoundError):
        asyncio.run(read_all([good, bad]))


def test_an_internal_error_is_raised() -> None:
    """A bug in the code is not returned as an error of a read."""

    async def wrong() -> int:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(read_each([wrong]))
    assert not issubclass(KeyError, HostError)
