"""Clock, randomness and name service of this machine, and the same without names for those who judge what others wrote.

The only source of values that differ between runs for an engine without a cluster.
"""

from __future__ import annotations

import time
from typing import NoReturn

from pyverno.errors import HostError, HostUnavailableError

# trust rows: name-server

__all__ = ["OfflineSystem", "System"]


class System:
    """Answers from the operating system; a subclass or another object may answer from a recording."""

    __slots__ = ()

    def now(self) -> int:
        """Return the wall clock in nanoseconds since the Unix epoch."""
        return time.time_ns()

    def random_bits(self, bits: int) -> int:
        """Return a random integer of that many bits."""
        import secrets  # few policies ask for chance

        return secrets.randbits(bits) if bits else 0

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name."""
        import socket  # few policies look up names

        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise HostError(f"lookup {name}: no such host") from error
        return tuple(dict.fromkeys(str(address[4][0]) for address in found))


class OfflineSystem(System):
    """Clock and randomness without the name service: a look-up would carry what an object holds to another machine."""

    __slots__ = ()

    def lookup_host(self, name: str) -> NoReturn:  # guard: no name is looked up offline
        """Raise HostUnavailableError."""
        raise HostUnavailableError("no host name is looked up here, only by `--dns` of `apply`, `test` and `jp query`")
