"""How long reviews may compute within one turn of the event loop, all of them together.

A loop goes through everything that is ready before it looks for what is new: a hundred reviews of 25 milliseconds that
are ready at once would hold up a health probe for seconds. This module must never judge.
"""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["Turns"]

TURN_SECONDS: Final = 0.03
"""Together with the last review that began within it, this is how long a turn can take."""


class Turns:
    """Is open while the reviews of this turn of the loop have taken less than `seconds`; the others need a worker."""

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds = seconds
        self._taken = 0.0
        self._is_counted = False

    @property
    def is_open(self) -> bool:
        """Tell whether one more review may compute within this turn."""
        return self._taken < self._seconds

    def take(self, seconds: float) -> None:
        """Count the time that a review has taken, until the loop has turned."""
        self._taken += seconds
        if not self._is_counted:
            self._is_counted = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._taken = 0.0
        self._is_counted = False
