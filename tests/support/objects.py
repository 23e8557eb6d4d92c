"""Every object of the process that the garbage collector knows."""

from __future__ import annotations

import gc

__all__ = ["every_object"]


def every_object() -> list[object]:
    """Return the objects of the collector, those that pytest collected and froze (`tests/conftest.py`) included."""
    gc.unfreeze()
    gc.collect()
    found: list[object] = gc.get_objects()
    gc.freeze()
    return found
