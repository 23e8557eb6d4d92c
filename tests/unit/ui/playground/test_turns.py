"""Turns of clients at the slots of the playground."""

from __future__ import annotations

import asyncio

import pytest

from pyverno.errors import HostError
from pyverno.ui.playground.turns import Turns


async def hold(turns: Turns, client: str, order: list[str], end: asyncio.Event) -> None:
    """Take a turn, note it, and hold it until the end."""
    async with turns.turn(client):
        order.append(client)
        await end.wait()


def test_one_client_does_not_keep_out_another() -> None:
    """However many turns it waits for, a client that has none running comes next."""

    async def play() -> list[str]:
        turns, order, ends = Turns(2, 20), [], [asyncio.Event() for _ in range(9)]
        tasks = [asyncio.create_task(hold(turns, "greedy", order, ends[number])) for number in range(7)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(hold(turns, "modest", order, ends[number])) for number in (7, 8)]
        for end in ends:
            end.set()
            for _ in range(5):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return order

    found = asyncio.run(play())
    assert ["greedy", "greedy", "modest"] == found[:3]
    assert 9 == len(found)


def test_the_queue_is_bounded_and_half_of_it_for_one_client() -> None:
    """What does not fit is an error at once."""

    async def play() -> list[str]:
        turns, order, end = Turns(1, 4), [], asyncio.Event()
        tasks = [asyncio.create_task(hold(turns, client, order, end)) for client in "aaaabbb"]
        for _ in range(3):
            await asyncio.sleep(0)
        refused = [client for client, task in zip("aaaabbb", tasks, strict=True) if task.done()]
        end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {HostError, type(None)} == {type(each) for each in results}
        return refused

    assert ["a", "b"] == asyncio.run(play())


def test_a_client_that_goes_away_gives_back_its_turn() -> None:
    """Both while it waits and while it holds one."""

    async def play() -> list[str]:
        turns, order, end = Turns(1, 9), [], asyncio.Event()
        tasks = [asyncio.create_task(hold(turns, client, order, end)) for client in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[0].cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        end.set()
        await tasks[2]
        async with asyncio.timeout(60), turns.turn("d"):
            return order

    assert ["a", "c"] == asyncio.run(play())


def test_a_turn_given_at_the_moment_of_leaving_is_not_lost() -> None:
    """The slot goes to the next client."""

    async def play() -> None:
        turns, end = Turns(1, 9), asyncio.Event()
        first = asyncio.create_task(hold(turns, "a", [], end))
        second = asyncio.create_task(hold(turns, "b", [], asyncio.Event()))
        await asyncio.sleep(0)
        end.set()
        await first
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        async with asyncio.timeout(60), turns.turn("c"):
            pass

    asyncio.run(play())
