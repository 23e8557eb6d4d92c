"""Addresses of pods."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.nodes.addresses import Addresses


def test_a_small_network_is_used_up_and_used_again() -> None:
    """Never its own address or the broadcast address."""
    used: list[str] = []
    addresses = Addresses("10.0.0.0/29", lambda: used)
    for _ in range(6):
        used.append(addresses.next())
    assert [f"10.0.0.{number}" for number in range(1, 7)] == used
    used.remove("10.0.0.3")
    assert "10.0.0.3" == addresses.next()
    used.append("10.0.0.3")
    with pytest.raises(OverflowError):
        addresses.next()


def test_it_continues_after_what_is_there() -> None:
    """Addresses of other networks do not matter."""
    assert "10.0.0.5" == Addresses("10.0.0.0/24", lambda: ["10.0.0.4", "192.0.2.9"]).next()
