"""When objects are evaluated again whose results may change without anything that is followed.

Each object has its turn once in every interval, at a time that follows from its uid: a rescan of all objects is spread
over the interval instead of being a burst at its end.
"""

from __future__ import annotations

import zlib
from typing import Final

from pyverno.value import dataclass

__all__ = ["Rescans"]

_TURNS: Final = 60
_SHORTEST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 15.0


@dataclass(frozen=True, slots=True)
class Rescans:
    """An interval divided into `turns`, with `pause` seconds from one to the next.

    >>> Rescans.of_interval(3600.0)
    Rescans(turns=240, pause=15.0)
    """

    turns: int
    pause: float

    @classmethod
    def of_interval(cls, seconds: float) -> Rescans:
        """Divide an interval: no turn comes later than 15 seconds after the one before it."""
        pause = min(max(seconds / _TURNS, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        return cls(max(round(seconds / pause), 1), pause)

    def turn_of(self, uid: bytes) -> int:
        """Return the turn of an object, which is the same in every interval."""
        # a checksum: uids of some API servers differ in a few bytes only
        return zlib.crc32(uid) % self.turns
