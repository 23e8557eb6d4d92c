"""Addresses of pods: the next free one of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address, IPv4Network

__all__ = ["Addresses"]


class Addresses:
    """Hands out addresses of a network in order, and starts over at its end.

    >>> addresses = Addresses("10.244.0.0/16", lambda: ["10.244.0.7"])
    >>> addresses.next(), addresses.next()
    ('10.244.0.8', '10.244.0.9')
    """

    def __init__(self, network: str, used: Callable[[], Iterable[str]]) -> None:
        """Take the network and a function that returns the addresses in use."""
        self._network = IPv4Network(network)
        self._used = used
        self._last: int | None = None
        self._taken: set[str] = set()

    def next(self) -> str:
        """Return a free address; the network's own and its broadcast address are never given."""
        if self._last is None:
            self._taken = set(self._used())
            mine = [int(found) for found in map(IPv4Address, self._taken) if found in self._network]
            self._last = max(mine, default=int(self._network.network_address))
        size = self._network.num_addresses
        for _ in range(size):
            self._last += 1
            if self._last >= int(self._network.broadcast_address):
                self._last = int(self._network.network_address) + 1
                self._taken = set(self._used())
            found = str(IPv4Address(self._last))
            if found not in self._taken:
                return found
        raise OverflowError(f"all addresses of {self._network} are in use")
