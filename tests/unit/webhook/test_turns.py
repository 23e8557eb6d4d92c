"""What one iteration of the event loop takes of the bodies that arrive."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress
from typing import cast

import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from multidict import CIMultiDict

from pyverno.webhook.bodies import Bodies
from pyverno.webhook.turns import Parts

_PART = 256 * 1024
_COUNT = 24


class Iterations:
    """Counts what happens in each iteration of the event loop."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._number = 0

    def add(self) -> None:
        self.counts[self._number] += 1

    async def during(self, work: Awaitable[object]) -> None:
        """Number the iterations while something is awaited."""
        loop = asyncio.get_running_loop()

        def begin() -> None:
            nonlocal handle
            self._number += 1
            handle = loop.call_soon(begin)

        handle = loop.call_soon(begin)
        try:
            await work
        finally:
            handle.cancel()


class Connection(BaseProtocol):
    """A client that sends a part of its body whenever it may, up to a number of parts."""

    def __init__(self, iterations: Iterations, parts: int) -> None:
        super().__init__(asyncio.get_running_loop())
        self.connection_made(asyncio.Transport())
        self.reader = StreamReader(self, 2**16, loop=asyncio.get_running_loop())
        self._iterations = iterations
        self._parts = parts
        self._send()

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self, resume_parser: bool = True) -> None:
        self._reading_paused = False
        if self._parts:
            self._iterations.add()
            asyncio.get_running_loop().call_soon(self._send)

    def request(self) -> web.BaseRequest:
        return cast("web.BaseRequest", _Request(self.reader))

    def _send(self) -> None:
        self._parts -= 1
        self.reader.feed_data(b"x" * _PART)
        if not self._parts:
            self.reader.feed_eof()


class _Request:
    content_length = None
    transport = None

    def __init__(self, content: StreamReader) -> None:
        self.content = content
        self.headers: CIMultiDict[str] = CIMultiDict()


def test_an_iteration_goes_on_with_one_large_body_however_many_arrive() -> None:
    """Each read from a socket and its decryption release the interpreter, and a busy thread gives it back late."""

    async def run() -> None:
        iterations = Iterations()
        bodies = Bodies(8 * _PART, 8 * _PART * _COUNT, 30)
        connections = [Connection(iterations, 6) for _ in range(_COUNT)]
        read = asyncio.gather(*(bodies.read(each.request()) for each in connections))
        await iterations.during(read)
        assert [6 * _PART] * _COUNT == [len(body) for body in read.result()]
        assert 5 * _COUNT == sum(iterations.counts.values())
        del iterations.counts[min(iterations.counts)]  # first parts have arrived with their heads
        assert max(iterations.counts.values()) <= 2

    asyncio.run(run())


@pytest.mark.parametrize(("size", "most"), [(1, 3 * _COUNT), (_PART // 4, 4), (_PART, 1), (9 * _PART, 1)])
def test_parts_share_an_iteration_by_their_bytes(size: int, most: int) -> None:
    """Small parts do not wait, as those of clients that send a byte at a time."""

    async def run() -> None:
        iterations, parts, order = Iterations(), Parts(_PART), []

        async def read(number: int) -> None:
            for _ in range(3):
                await parts.take(size)
                iterations.add()
                order.append(number)

        await iterations.during(asyncio.gather(*map(read, range(_COUNT))))
        assert max(iterations.counts.values()) <= most
        assert dict.fromkeys(range(_COUNT), 3) == Counter(order)
        if size > 1:
            assert list(range(_COUNT)) == list(dict.fromkeys(order))

    asyncio.run(run())


def test_a_body_that_is_given_up_costs_the_others_no_turn() -> None:
    """A cancelled reader leaves, whether it was the next or not."""

    async def run() -> None:
        parts = Parts(10)
        await parts.take(10)
        waiting = [asyncio.ensure_future(parts.take(10)) for _ in range(3)]
        await asyncio.sleep(0)
        for each in waiting[:2]:
            each.cancel()
        await asyncio.wait_for(waiting[2], 30)
        for each in waiting[:2]:
            with suppress(asyncio.CancelledError):
                await each
        await asyncio.wait_for(parts.take(10), 30)

    asyncio.run(run())
