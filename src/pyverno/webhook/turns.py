"""Limits on the reviews and on the bytes of bodies within one iteration of the event loop.

The loop runs all ready callbacks before it polls for new events: a hundred ready reviews of 25 milliseconds, or as many
sockets with a part of a large body, would delay a health probe.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

__all__ = ["Parts", "Turns"]

TURN_SECONDS: Final = 0.03
"""An iteration takes at most this long, plus the last review that started within it."""


class Turns:
    """Open while the reviews of this iteration have taken less than `seconds`; further ones need a worker."""

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._taken = 0.0
        self._is_counted = False

    @property
    def is_open(self) -> bool:
        """Return whether one more review may compute within this iteration."""
        return self._taken < self._seconds

    def take(self, seconds: float) -> None:
        """Add the time of a review; the sum is reset with the next iteration."""
        self._taken += seconds
        if not self._is_counted:
            self._is_counted = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._taken = 0.0
        self._is_counted = False


PART_BYTES: Final = 256 * 1024
"""Bytes of bodies that an iteration takes, plus the last part that began within it."""


class Parts:
    """Bodies that arrive take turns: an iteration takes `size` bytes of them, and further parts wait in order.

    A connection with unread data is not read from. So this also limits what the loop decrypts in an iteration, which
    takes long while worker threads compute: each read releases the interpreter.
    """

    def __init__(self, size: int = PART_BYTES) -> None:
        self._size = size
        self._taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._is_counted = False

    async def take(self, size: int) -> None:
        """Count a part of `size` bytes; return when the next one may be read."""
        if self._taken < self._size:  # then no part is waiting
            self._taken += size
            self._count()
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, size))
        await turn

    def _count(self) -> None:
        if not self._is_counted:
            self._is_counted = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._taken = 0
        self._is_counted = False
        while self._waiting and self._taken < self._size:
            turn, size = self._waiting.popleft()
            if not turn.done():  # its body may have been given up
                self._taken += size
                turn.set_result(None)
        if self._taken:
            self._count()
