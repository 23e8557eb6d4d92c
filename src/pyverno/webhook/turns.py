"""A limit on the total time of reviews within one iteration of the event loop.

The loop runs all ready callbacks before it polls for new events: a hundred ready reviews of 25 milliseconds would delay
a health probe for seconds.
"""

from __future__ import annotations

import asyncio
from typing import Final

__all__ = ["Turns"]

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
