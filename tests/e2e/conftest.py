"""What holds for all tests with processes and servers."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _collected() -> Iterator[None]:
    """Collect the garbage of each module at its end, so that what it left open fails its last test and no other."""
    yield
    gc.collect()
