"""How much a changed object has that the original has not: what patches repeat is shared in memory, but not in JSON."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Final

from pyverno.kube.json import JSON
from pyverno.kube.meter import Meter

__all__ = ["growth"]

_CHARGED_TOGETHER: Final = 64


def growth(before: JSON, after: JSON, most: int, meter: Meter) -> int:
    """Return about by how many bytes a value has grown, as soon as that is more than `most`.

    What both share costs nothing. Values in new places count whole, unless the sum of all values grew by less.

    >>> from pyverno.kube.meter import UNMETERED
    >>> text = "x" * 100
    >>> growth({"a": text}, {"a": text, "b": [text, text]}, 1000, UNMETERED)
    209
    """
    found = _added(before, after, most, meter)
    if found <= most:
        return found
    known = _added(None, before, -1, meter)
    return max(_added(None, after, known + most, meter) - known, 0)


def _added(before: JSON, after: JSON, most: int, meter: Meter) -> int:
    """Return the bytes of the values that differ, up to just above `most` (-1: all)."""
    waiting: list[tuple[Any, Any]] = [(before, after)]
    size = charged = 0
    while waiting:
        old, new = waiting.pop()
        if old is new:
            continue
        size += 2
        if isinstance(new, str):
            size += len(new) if old != new else 0
        elif isinstance(new, dict):
            was = old if isinstance(old, dict) else {}
            size += sum(len(key) for key in new if key not in was)
            waiting += [(was.get(key), item) for key, item in new.items()]
        elif isinstance(new, list):
            waiting += zip_longest(old[: len(new)] if isinstance(old, list) else (), new)
        if 0 <= most < size:
            break
        charged += 1
        if charged == _CHARGED_TOGETHER:
            meter.charge_steps(charged // 8)
            charged = 0
    return size
