"""`python -m tests.bench.loading PORT CONNECTIONS FILE`: sends one request repeatedly and prints the time it took.

Closed loop over keep-alive connections with TLS: each sends its next request when it has its answer. Reads the
certificate to trust from the environment variable `CERTIFICATE`. Each line on stdin is a number of requests, answered
by JSON with seconds and latencies when they are done. This module must never know what it sends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import ssl
import sys
import time
from pathlib import Path

__all__: list[str] = []

_LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)
_END = b"\r\n\r\n"


class _Round:
    """A number of requests, and a future that completes with the last one."""

    def __init__(self, requests: int, pause: float) -> None:
        self.left = requests
        self.running = 0
        self.pause = pause
        self.seconds: list[float] = []
        self.done = asyncio.get_running_loop().create_future()


class _Connection(asyncio.Protocol):
    """One connection; sends as long as its round has requests left."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._got = b""
        self._round: _Round | None = None
        self._sent = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._round is not None and not self._round.done.done():
            self._round.done.set_exception(error or ConnectionResetError("the server closed a connection"))

    def begin(self, running: _Round) -> None:
        """Take part in a round."""
        self._round = running
        running.running += 1
        self._next()

    def _next(self) -> None:
        running = self._round
        if running is None:
            return
        if not running.left:
            self._round = None
            running.running -= 1
            if not running.running and not running.done.done():
                running.done.set_result(None)
            return
        running.left -= 1
        self._sent = time.perf_counter()
        self._transport.write(self._message)

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, end, rest = self._got.partition(_END)
        if not end:
            return
        found = _LENGTH.search(head)
        if found is None or len(rest) < int(found[1]):
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server answered {self._got[:2000]!r}")
        self._got = b""
        running = self._round
        if running is not None:
            running.seconds.append(time.perf_counter() - self._sent)
            if running.pause:
                asyncio.get_running_loop().call_later(running.pause, self._next)
            else:
                self._next()


async def _main(port: int, connections: int, message: bytes) -> None:
    loop = asyncio.get_running_loop()
    trusted = ssl.create_default_context(cadata=os.environ["CERTIFICATE"])
    opened = [
        (await loop.create_connection(lambda: _Connection(message), "127.0.0.1", port, ssl=trusted))[1]
        for _ in range(connections)
    ]
    print("{}", flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        number, pause = line.split()
        running = _Round(int(number), float(pause))
        began = time.perf_counter()
        for each in opened:
            each.begin(running)
        await running.done
        print(json.dumps({"seconds": time.perf_counter() - began, "latencies": sorted(running.seconds)}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("connections", type=int)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    asyncio.run(_main(options.port, options.connections, options.file.read_bytes()))
