"""Progress of long work: a counter on stderr if it is a terminal, otherwise nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyverno.cli.terminal import STDERR

# trust rows: environment

__all__ = ["tracked"]

Item = TypeVar("Item")

_EVERY_SECONDS = 0.2


def tracked(items: Iterable[Item], total: int, what: str) -> Iterable[Item]:
    """Return the items unchanged; on a terminal a line on stderr counts them while they are taken.

    >>> list(tracked([1, 2], 2, "resources"))
    [1, 2]
    """
    shows = STDERR.isatty() and os.environ.get("TERM") != "dumb"
    return _count(items, total, what) if shows else items


def _count(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    shown = started = time.monotonic()
    written = False
    try:
        for number, item in enumerate(items, 1):
            yield item
            now = time.monotonic()
            if now - shown >= _EVERY_SECONDS:
                shown, written = now, True
                rate = number / (now - started)
                STDERR.raw.write(f"\r{number}/{total} {what}, {rate:.0f}/s\x1b[K")
                STDERR.raw.flush()
    finally:
        if written:
            STDERR.raw.write("\r\x1b[K")
            STDERR.raw.flush()
