"""A circuit breaker: nothing more is written while there is too much already, or nobody knows how much there is.

This module must never know what is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["CircuitBreaker"]

log = logging.getLogger("pyverno.reports")


class CircuitBreaker:
    """Open while there are more than `max_count`, or while their number is not known.

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
        """Take a name, what counts (None = not known), how many there may be, and who is told of every question."""
        self.name = name
        self._on_check = on_check
        self._count = count
        self._max_count = max_count
        self._was_open = False

    def is_open(self) -> bool:
        """Tell whether nothing may be written; said once in the log when it opens, and when it closes."""
        count = self._count()
        is_open = count is None or count > self._max_count
        if is_open != self._was_open:
            fields = {"breaker": self.name, "count": count, "most": self._max_count}
            if is_open:
                log.error("nothing more is written: there is too much, or nobody knows", extra={"fields": fields})
            else:
                log.warning("writing goes on", extra={"fields": fields})
        self._was_open = is_open
        return is_open

    def passes(self) -> bool:
        """Tell whether one more thing may be written."""
        is_open = self.is_open()
        self._on_check(self.name, is_open)
        return not is_open
