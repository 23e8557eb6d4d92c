"""B7, B8, B9, B13: the webhook as a server, with its client in another process.

What is measured is the processor time of the server process alone, so a slow client costs nothing. This module must
never serve or send by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.bench.inputs import small_review
from tests.bench.serving import PATH

__all__ = [
    "Child",
    "floor_ratio",
    "latency_milliseconds",
    "latency_ratio",
    "longest_pause",
    "policy_kilobytes",
    "reviews_per_second",
    "server_ratio",
    "start_client",
    "start_server",
    "throughput",
    "webhook_megabytes",
]

CONNECTIONS = 50
_ROUNDS = 7
_REQUESTS = 2000
_FEW = 400
_MANY = 5_000
_PAUSE_SECONDS = 11.0


class Child:
    """A child that answers lines by lines."""

    def __init__(self, module: str, *arguments: str, errors: bool = True, **environment: str) -> None:
        command = (sys.executable, "-m", module, *arguments)
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if errors else subprocess.DEVNULL,
            text=True,
            env={**os.environ, **environment},
        )
        self.first = self._read()

    def ask(self, line: str = "") -> Any:
        """Send a line and return the answer."""
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the child by the end of its input."""
        self._child.communicate(timeout=10)

    def _read(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())


@contextmanager
def start_server(kind: str, *arguments: str, errors: bool = True, **environment: str) -> Iterator[Child]:
    """Run a server of reviews; without `errors` its log is dropped."""
    server = Child("tests.bench.serving", kind, *arguments, errors=errors, **environment)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def start_client(
    server: Child, connections: int = CONNECTIONS, body: bytes | None = None, path: str = PATH
) -> Iterator[Child]:
    """Run a client that sends one review over and over."""
    body = small_review() if body is None else body
    head = f"POST {path} HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder) / "request"
        message.write_bytes(head.encode() + b"\r\n" + body)
        port, certificate = server.first["port"], server.first["certificate"]
        client = Child("tests.bench.loading", str(port), str(connections), str(message), CERTIFICATE=certificate)
        try:
            client.ask(f"{_FEW} 0")  # handshakes and first calls are not what is measured
            yield client
        finally:
            client.close()


@cache
def _microseconds() -> dict[str, float]:
    """Return the processor time of one review for each kind of server, in microseconds."""
    best = dict.fromkeys(("full", "constant", "echo"), float("inf"))
    with ExitStack() as stack:
        servers = {kind: stack.enter_context(start_server(kind)) for kind in best}
        clients = {kind: stack.enter_context(start_client(server)) for kind, server in servers.items()}
        for _ in range(_ROUNDS):
            for kind in best:
                before = servers[kind].ask()["seconds"]
                clients[kind].ask(f"{_REQUESTS} 0")
                used = servers[kind].ask()["seconds"] - before
                best[kind] = min(best[kind], used / _REQUESTS * 1e6)
    return best


def server_ratio() -> float:
    """B7: one review with everything, by one that is parsed and answered with a constant."""
    return _microseconds()["full"] / _microseconds()["constant"]


def floor_ratio() -> float:
    """B8: one that is parsed and answered with a constant, by one that is sent back."""
    return _microseconds()["constant"] / _microseconds()["echo"]


def reviews_per_second() -> float:
    """Return how many reviews one core can do in a second."""
    return 1e6 / _microseconds()["full"]


def latency_milliseconds() -> float:
    """B9: the slowest of a hundred when fifty connections never pause, in milliseconds."""
    with start_server("full") as server, start_client(server) as client:
        found = client.ask(f"{_REQUESTS} 0")["latencies"]
    return float(found[len(found) * 99 // 100] * 1000)


def throughput() -> float:
    """B9: reviews a second when fifty connections never pause, by the clock; the server has one core at most."""
    with start_server("full") as server, start_client(server) as client:
        return float(_MANY / client.ask(f"{_MANY} 0")["seconds"])


def latency_ratio() -> float:
    """B9: the slowest of a hundred at a quarter of what one core can do, by the median over one connection."""
    with start_server("full") as server:
        with start_client(server, 1) as client:
            alone = client.ask(f"{_REQUESTS} 0")["latencies"]
        with start_client(server) as client:
            pause = CONNECTIONS / (reviews_per_second() / 4)
            loaded = client.ask(f"{_REQUESTS} {pause:.6f}")["latencies"]
    return float(loaded[len(loaded) * 99 // 100] / alone[len(alone) // 2])


def longest_pause() -> float:
    """B9: the longest collection of garbage while fifty connections never pause, in ms of the processor.

    The load lasts for two rounds of `gctuning`, the one after the first use of all policies included. The full
    collection, which follows such a growth within five minutes, is not among them.
    """
    with start_server("full", "--policies", "1000", "--pauses") as server, start_client(server) as client:
        end = time.monotonic() + _PAUSE_SECONDS
        while time.monotonic() < end:
            client.ask(f"{_FEW} 0")
        return float(server.ask()["pause"] * 1000)


def policy_kilobytes() -> float:
    """B13: how much memory a policy takes, by a thousand of them that have judged something."""
    few, many = _resident("--policies", "17"), _resident("--policies", "1017")
    return (many - few) / 1000 / 1024


def webhook_megabytes() -> float:
    """B13: the memory of the webhook with all policies of the library's Pod Security Standards."""
    return _resident() / 1024 / 1024


def _resident(*arguments: str) -> float:
    with start_server("full", *arguments) as server, start_client(server, 4) as client:
        client.ask(f"{_FEW} 0")
        return float(server.ask()["bytes"])
