"""Verifications that passed a while ago, by digest and constraints.

A tag is no part of a key: one that moved has another digest, and is verified again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple

__all__ = ["MAX_PASSES", "PASS_SECONDS", "PassCache", "PassKey"]

MAX_PASSES: Final = 1000
PASS_SECONDS: Final = 3600
_NANOSECONDS: Final = 1_000_000_000


class PassKey(NamedTuple):
    """The key of a passed check: the image's repository and digest, and a hash of everything that was demanded."""

    repository: str
    digest: str
    constraints: str


class _Pass(NamedTuple):
    ends: int
    trust: object


class PassCache:
    """Passes only, the oldest of which are dropped first; may be used by many threads.

    `trust` is the trust root that a verification used: with another one its passes no longer count. Times are
    nanoseconds since 1970.
    """

    def __init__(self, size: int = MAX_PASSES, seconds: float = PASS_SECONDS) -> None:
        """Keep `size` passes for some seconds each."""
        self._size = size
        self._nanoseconds = int(seconds * _NANOSECONDS)
        self._kept: OrderedDict[PassKey, _Pass] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, key: PassKey, trust: object, now: int) -> bool:
        """Return whether this passed, with the same trust root, and not too long ago."""
        with self._lock:
            found = self._kept.get(key)
            return found is not None and found.trust is trust and now < found.ends

    def add(self, key: PassKey, trust: object, now: int) -> None:
        """Keep a pass."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = _Pass(now + self._nanoseconds, trust)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
