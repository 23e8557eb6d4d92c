"""Throttling of log lines that any client can cause: a few at once, then one a second, with the number suppressed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["Throttle"]

_MAX_KINDS: Final = 100
_OTHER: Final = "other"


class Throttle:
    """Lets `burst` lines of one kind through at once, and from then on `per_second`.

    >>> throttle = Throttle(burst=2, clock=lambda: 0.0)
    >>> [throttle.held_back("a") for _ in range(4)]
    [0, 0, None, None]
    """

    def __init__(self, *, burst: int = 5, per_second: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._kinds: dict[str, tuple[float, float, int]] = {}

    def held_back(self, kind: str) -> int | None:
        """Return how many lines were held back since the last one when a line may be written now, None otherwise."""
        if kind not in self._kinds and len(self._kinds) >= _MAX_KINDS:
            kind = _OTHER
        now = self._clock()
        left, before, held = self._kinds.get(kind, (float(self._burst), now, 0))
        left = min(left + (now - before) * self._per_second, float(self._burst))
        if left < 1:
            self._kinds[kind] = left, now, held + 1
            return None
        self._kinds[kind] = left - 1, now, 0
        return held
