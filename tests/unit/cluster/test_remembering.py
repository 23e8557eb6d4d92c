"""A host that remembers: asked once, unless it failed."""

from __future__ import annotations

from typing import Any

import pytest

from pyverno.cluster.remembering import RememberingHost
from pyverno.engine.host import NoHost
from pyverno.errors import HostError


class Counting(NoHost):
    """A host that counts, and fails as often as it is told."""

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


def test_an_answer_is_remembered() -> None:
    """By its whole question."""
    inner = Counting()
    host = RememberingHost(inner)
    for name in ("a", "b", "a", "b"):
        assert {"name": name} == host.get_object("v1", "Pod", "default", name)
    assert ["a", "b"] == inner.asked


def test_an_error_is_asked_for_again() -> None:
    """It may be over."""
    host = RememberingHost(Counting(failures=1))
    with pytest.raises(HostError):
        host.get_object("v1", "Pod", "default", "a")
    assert {"name": "a"} == host.get_object("v1", "Pod", "default", "a")


def test_the_clock_goes_on() -> None:
    """It is never remembered."""
    host = RememberingHost(Counting())
    assert [1, 2] == [host.now(), host.now()]


def test_memory_is_bounded() -> None:
    """What finds no room is asked for each time."""
    inner = Counting()
    host = RememberingHost(inner)
    for _ in range(2):
        for number in range(300):
            host.get_object("v1", "Pod", "default", str(number))
    assert 300 + 44 == len(inner.asked)
