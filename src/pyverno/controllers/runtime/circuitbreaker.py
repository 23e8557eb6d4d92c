"""A circuit breaker that stops writes while too many objects exist, or while their number is unknown."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["CircuitBreaker"]

log = logging.getLogger("pyverno.reports")


class CircuitBreaker:
    """Open while the count exceeds `max_count` or is unknown.

    >>> CircuitBreaker("reports", lambda: 3, max_count=2).is_open()
    True
    """

    def __init__(
        self,
        name: str,
        count: Callable[[], int | None],
        *,
        max_count: int,
        on_check: Callable[[str, bool], None] = lambda _name, _is_open: None,
    ) -> None:
        """Take a name, a counter (None = unknown), the limit, and a callback for the result of every check."""
        self.name = name
        self._on_check = on_check
        self._count = count
        self._max_count = max_count
        self._was_open = False

    def is_open(self) -> bool:
        """Return whether writes are stopped; opening and closing are logged once each."""
        count = self._count()
        is_open = count is None or count > self._max_count
        if is_open != self._was_open:
            fields = {"breaker": self.name, "count": count, "most": self._max_count}
            if is_open:
                log.error("writes are stopped: the limit is exceeded or the count is unknown", extra={"fields": fields})
            else:
                log.warning("writes are resumed", extra={"fields": fields})
        self._was_open = is_open
        return is_open

    def passes(self) -> bool:
        """Return whether one more object may be written."""
        is_open = self.is_open()
        self._on_check(self.name, is_open)
        return not is_open
