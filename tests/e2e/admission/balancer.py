"""A load balancer like a Service: connections go to ready replicas only.

It forwards bytes and looks at readiness, like kube-proxy and the kubelet together. This module must never look into
what it forwards.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import time
from contextlib import suppress

__all__ = ["Balancer"]

_PROBE_SECONDS = 0.1
_LATE_PROBES = 3
_ASK = b"GET /health/readiness HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"


class Balancer:
    """Listens on one port for any number of backends on this machine."""

    def __init__(self) -> None:
        self.port = 0
        self._ports: dict[int, asyncio.Task[None]] = {}
        self._ready: set[int] = set()
        self.said: dict[int, bytes] = {}
        """The last answer to a probe of every backend."""
        self.troubles: list[tuple[float, str]] = []
        """Times and reasons of connections that could not be forwarded, of which the backends have no record."""
        self._turn = itertools.count()
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, port: int = 0) -> None:
        """Listen; with port 0 the system chooses."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        self._server.close()
        tasks = [*self._ports.values(), *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # a task that is cancelled before its first step closes nothing
        for writer in tuple(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.05)

    def add(self, port: int) -> None:
        """Take a backend; it gets connections when it is ready."""
        self._ports[port] = asyncio.create_task(self._probe(port))

    def remove(self, port: int) -> None:
        """Forget a backend that is gone."""
        self._ready.discard(port)
        self._ports.pop(port).cancel()
        self.said.pop(port, None)

    def is_ready(self, port: int) -> bool:
        """Return whether the last probe found the replica ready."""
        return port in self._ready

    async def _probe(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        silent = 0
        while True:
            try:
                async with asyncio.timeout(2):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                    try:
                        writer.write(_ASK)
                        answer = await reader.read()
                        is_ready = b" 200 " in answer.partition(b"\r\n")[0]
                    finally:
                        await _close(writer)
                silent = 0
            except TimeoutError as error:
                # like the kubelet: a probe may be late once or twice on a busy machine
                answer, silent = repr(error).encode(), silent + 1
                is_ready = silent < _LATE_PROBES and port in self._ready
            except OSError as error:
                answer, is_ready = repr(error).encode(), False
            # both in one step: whoever has read the answer may rely on `is_ready`
            self.said[port] = answer
            (self._ready.add if is_ready else self._ready.discard)(port)
            await asyncio.sleep(_PROBE_SECONDS)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            await _close(writer)
            self._writers.discard(writer)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = sorted(self._ready)
        if not ready:
            self.troubles.append((time.time(), f"no replica is ready: {self.said}"))
            return
        port = ready[next(self._turn) % len(ready)]
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            self.troubles.append((time.time(), f"{port}, which said that it is ready, cannot be reached: {error!r}"))
            return
        pumps = [asyncio.create_task(_pump(reader, to_writer)), asyncio.create_task(_pump(to_reader, writer))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_writer.close()  # before anything is waited for: who is cancelled while waiting does nothing any more
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            await _close(to_writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
