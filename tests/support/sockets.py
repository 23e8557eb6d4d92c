"""What a test asks of other machines: look-ups and connections, and programs that it starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["recorded_sockets"]

_EVENTS = (
    *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"),
    *("socket.connect", "socket.sendto", "socket.sendmsg", "subprocess.Popen", "os.posix_spawn", "os.system"),
)
_SEEN: list[str] = []
_RECORDING: list[bool] = []


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if _RECORDING and event in _EVENTS:
        _SEEN.append(f"{event}{arguments[:2]}")


@cache
def _install() -> None:
    sys.addaudithook(_record)  # none can be removed


@contextmanager
def recorded_sockets() -> Iterator[list[str]]:
    """Yield the list of what this process does towards others while the context is open."""
    _install()
    _SEEN.clear()
    _RECORDING.append(True)
    try:
        yield _SEEN
    finally:
        _RECORDING.clear()
