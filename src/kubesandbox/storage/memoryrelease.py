"""Gives the memory of deleted objects back to the operating system.

The C library keeps freed memory for itself, unless it is at the end of its heap. After a mass deletion that is most of
what the objects and the answer had taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["MemoryRelease", "trim_heap"]

_PAUSE: Final = 2.0
_LATER: Final = 5
_LEAST_BYTES: Final = 2 * 2**20
_TRICKLE: Final = 8
"""The share of these bytes that may be deleted in a pause: controllers always delete a few objects."""


class MemoryRelease:
    """Trims the heap once deletions have paused, and once more when their answers have been read.

    All methods belong to the event loop's thread.
    """

    def __init__(self, trim: Callable[[], None], *, least_bytes: int = _LEAST_BYTES, pause: float = _PAUSE) -> None:
        """Take what trims the heap; it runs `pause` seconds after `least_bytes` of JSON or more were deleted.

        The second time comes five times as long after the first one: a slow client reads the answer until then.
        """
        self._trim = trim
        self._least_bytes = least_bytes
        self._pause = pause
        self._bytes = self._awaited = 0
        self._is_second = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_due(self) -> bool:
        """Whether the heap will be trimmed."""
        return self._timer is not None

    def note(self, size: int) -> None:
        """Note the deletion of an object with so many bytes of JSON."""
        self._bytes += size
        if self._timer is None and self._bytes >= self._least_bytes:
            self._wait()

    def close(self) -> None:
        """Trim no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, times: int = 1) -> None:
        self._awaited = self._bytes
        self._timer = asyncio.get_running_loop().call_later(self._pause * times, self._release)

    def _release(self) -> None:
        if self._bytes - self._awaited > self._least_bytes // _TRICKLE:
            self._is_second = False
            self._wait()
            return
        self._timer = None
        self._bytes = 0
        self._trim()
        self._is_second = not self._is_second
        if self._is_second:
            self._wait(_LATER)


def trim_heap() -> None:
    """Return free memory to the operating system where the C library can (glibc); elsewhere do nothing."""
    import ctypes  # only after a mass deletion

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
