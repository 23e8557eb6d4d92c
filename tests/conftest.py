"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# a change that passes here passes everywhere: new inputs are for the nightly run
settings.register_profile("same inputs", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
if not os.environ.get("PYVERNO_NIGHTLY"):
    settings.load_profile("same inputs")


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests, a million objects, from the garbage collections of all tests."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Collect garbage before a property test.

    A finalizer of an earlier test's garbage (aiohttp shuffles waiters when a connection is released) may touch the
    global `random` while Hypothesis draws, which it takes for a strategy that is not deterministic.
    """
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        gc.collect()
