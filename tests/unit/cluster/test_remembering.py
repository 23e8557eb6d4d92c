"""A host that caches results but not errors."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.cluster.remembering import RememberingHost
from pyverno.engine.host import NoHost
from pyverno.errors import HostError


class Counting(NoHost):
    """A host that counts its calls, and fails the given number of times."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[str] = []
        self.failures = failures

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> dict[str, Any] | None:
        """Return an object with its name."""
        self.asked.append(name)
        if len(self.asked) <= self.failures:
            raise HostError("away")
        return {"name": name}

    def now(self) -> int:
        """Return how often the clock was read."""
        self.asked.append("now")
        return len(self.asked)


def test_a_result_is_cached() -> None:
    """The key has all arguments of the call."""
    inner = Counting()
    host = RememberingHost(inner)
    for name in ("a", "b", "a", "b"):
        assert {"name": name} == host.get_object("v1", "Pod", "default", name)
    assert ["a", "b"] == inner.asked


def test_an_error_is_not_cached() -> None:
    """The next call may succeed."""
    host = RememberingHost(Counting(failures=1))
    with pytest.raises(HostError):
        host.get_object("v1", "Pod", "default", "a")
    assert {"name": "a"} == host.get_object("v1", "Pod", "default", "a")


def test_the_clock_is_not_cached() -> None:
    """Each read returns the current time."""
    host = RememberingHost(Counting())
    assert [1, 2] == [host.now(), host.now()]


def test_memory_is_bounded() -> None:
    """Results beyond the limit are read each time."""
    inner = Counting()
    host = RememberingHost(inner)
    for _ in range(2):
        for number in range(300):
            host.get_object("v1", "Pod", "default", str(number))
    assert 300 + 44 == len(inner.asked)
