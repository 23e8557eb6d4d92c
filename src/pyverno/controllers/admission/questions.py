"""Answered requests that wait until the API server confirms them: until then each is only a question.

The API server stores a change after the last webhook has answered. Requests that it never stores, because another
webhook refuses them or because they do not come from an API server, are counted, and logged at a limited rate.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["Questions", "Refusals"]

_PAUSES: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 12.0, 16.0, 20.0)
"""Seconds between two looks at one request, which an API server works on for a minute at most."""

_MAX_SOURCES: Final = 4
_LOG_SECONDS: Final = 10.0

log = logging.getLogger("pyverno.followup")
Item = TypeVar("Item")


class Refusals:
    """Counts requests that are not confirmed; says so at most once in ten seconds."""

    def __init__(self, work: str, count: Callable[[str], None]) -> None:
        """Take the work that does not follow from them, and what counts it."""
        self._work = work
        self._count = count
        self._since = 0
        self._told = -_LOG_SECONDS

    def note(self, reason: str, source: str) -> None:
        """Count one refusal of a caller."""
        self._count(self._work)
        self._since += 1
        if time.monotonic() - self._told < _LOG_SECONDS:  # guard: refusals are logged at a limited rate
            return
        fields = {"work": self._work, "reason": reason, "caller": source, "count": self._since}
        log.warning("nothing follows from requests that the API server does not confirm", extra={"fields": fields})
        self._since, self._told = 0, time.monotonic()


class Questions(Generic[Item]):
    """Requests whose changes are not stored yet, each with a timer; bounded for each source.

    Of a source that has too many, the one that waits longest gives way: real changes are stored within moments.
    """

    def __init__(self, again: Callable[[Item, int], None], lost: Callable[[Item, str], None], max_items: int) -> None:
        """Take what looks at a request again, with the number of looks so far, and what is told of one given up."""
        self._again = again
        self._lost = lost
        self._max_items = max(max_items, 1)
        self._waiting: dict[str, OrderedDict[int, tuple[Item, asyncio.TimerHandle, int]]] = {}
        self._number = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, item: Item, source: str, looks: int, reason: str) -> None:
        """Look at a request again later; after the last look it is given up for this reason."""
        if looks >= len(_PAUSES):
            self._lost(item, reason)
            return
        if len(self) >= self._max_items * _MAX_SOURCES:
            self._lost(item, "too many requests are not stored")
            return
        self._number += 1
        mine = self._waiting.setdefault(source, OrderedDict())
        if len(mine) >= self._max_items:  # guard: questions of a source are bounded
            oldest, timer, _ = mine.pop(next(iter(mine)))
            timer.cancel()
            self._lost(oldest, "too many requests of one caller are not stored")
        timer = asyncio.get_running_loop().call_later(_PAUSES[looks], self._look, source, self._number)
        mine[self._number] = item, timer, looks + 1

    def drain(self) -> None:
        """Look at all requests once more, now: the process ends."""
        for source, waiting in tuple(self._waiting.items()):
            for number, (_, timer, _) in tuple(waiting.items()):
                timer.cancel()
                self._look(source, number)

    def _look(self, source: str, number: int) -> None:
        mine = self._waiting.get(source, OrderedDict())
        item, _, looks = mine.pop(number)
        if not mine:
            self._waiting.pop(source, None)
        self._again(item, looks)
