"""What holds for all tests."""

from __future__ import annotations

import gc

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Collect garbage before a property test.

    A finalizer of an earlier test's garbage (aiohttp shuffles waiters when a connection is released) may touch the
    global `random` while Hypothesis draws, which it takes for a strategy that is not deterministic.
    """
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        gc.collect()
