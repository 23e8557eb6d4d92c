"""Free ports for servers that need their port before they start, each for one test process alone."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from typing import Final

__all__ = ["free_port"]

_FIRST, _COUNT = 20_000, 10_000
"""Below the range that the system assigns to outgoing connections, which could take a port before its server binds."""

_RESERVED: Final[list[socket.socket]] = []
"""UDP sockets on the ports that were returned: TCP servers can use these ports, other test processes avoid them."""


def free_port() -> int:
    """Return a free TCP port, reserved until this process ends."""
    while True:
        port = _FIRST + secrets.randbelow(_COUNT)
        reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with suppress(OSError), socket.socket() as probe:
            reservation.bind(("127.0.0.1", port))
            probe.bind(("127.0.0.1", port))
            _RESERVED.append(reservation)
            return port
        reservation.close()
