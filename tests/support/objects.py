"""Every object of the process that the garbage collector knows, and the caches among them."""

from __future__ import annotations

import gc
from functools import _lru_cache_wrapper

__all__ = ["every_object", "forget_caches"]


def every_object() -> list[object]:
    """Return the objects of the collector, those that pytest collected and froze (`tests/conftest.py`) included."""
    gc.unfreeze()
    gc.collect()
    found: list[object] = gc.get_objects()
    gc.freeze()
    return found


def forget_caches() -> None:
    """Empty every cache of the product: what is cached costs nothing, and a site behind it is not reached."""
    for each in every_object():
        if isinstance(each, _lru_cache_wrapper) and each.__module__.startswith("pyverno."):
            each.cache_clear()
