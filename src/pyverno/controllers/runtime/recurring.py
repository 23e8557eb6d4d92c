"""A fault that lasts, in the log: when it begins, when its reason changes, once a minute, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from logging import Logger
from typing import Final

__all__ = ["RecurringFault"]

_REMIND_SECONDS: Final = 60.0


class RecurringFault:
    """Logs one fault of a loop that tries again and again; the loop reports every try."""

    def __init__(
        self,
        log: Logger,
        failing: str,
        mended: str,
        *,
        reason: str = "error",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the logger, the messages while the fault lasts and when it has ended, and the field of the reason."""
        self._log = log
        self._failing = failing
        self._mended = mended
        self._field = reason
        self._clock = clock
        self._reason = ""
        self._began = 0.0
        self._logged = 0.0

    def failed(self, reason: str) -> None:
        """Report a try that failed; logs the first, a new reason, and a reminder every minute."""
        now = self._clock()
        if not self._reason:
            self._began = now
        if reason != self._reason or now - self._logged >= _REMIND_SECONDS:
            self._logged = now
            fields = {self._field: reason, "seconds": round(now - self._began)}
            self._log.warning(self._failing, extra={"fields": fields})
        self._reason = reason

    def succeeded(self) -> None:
        """Report a try that did not fail; logs the end of a fault."""
        if self._reason:
            fields = {"seconds": round(self._clock() - self._began)}
            self._log.info(self._mended, extra={"fields": fields})
        self._reason = ""
