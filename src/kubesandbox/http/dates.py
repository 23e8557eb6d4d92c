"""The Date header of responses: the time of the cluster in whole seconds, written once a second."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate

__all__ = ["DateHeader", "machine_time"]


def machine_time() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class DateHeader:
    """Writes the time of a clock as HTTP does.

    >>> DateHeader(lambda: datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)).text()
    'Fri, 02 Jan 2026 03:04:05 GMT'
    """

    def __init__(self, clock: Callable[[], datetime] = machine_time) -> None:
        """Take the clock of the cluster."""
        self._clock = clock
        self._second = 0
        self._text = ""

    def text(self) -> str:
        """Return the header of this second."""
        second = int(self._clock().timestamp())
        if second != self._second or not self._text:
            self._second, self._text = second, formatdate(second, usegmt=True)
        return self._text
