"""Times to live: memory of the cleanup controller for each object, and how late deletions come.

The API server is a sandbox in a process of its own, without controllers; the cleanup controller runs here with the
limits of requests that it has by default.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import tracemalloc
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.cleanup.controller import CleanupController, CleanupSettings
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.testing import install_definitions

__all__ = ["bytes_for_each_object", "worst_lateness"]

OBJECTS = 10_000
SPREAD_SECONDS = 120
"""Over how long the objects are due: 83 a second, below the limit of 100 requests a second."""
_MAPS = GVR("", "v1", "configmaps")
_NAMESPACES = GVR("", "v1", "namespaces")
_TTL = "cleanup.kyverno.io/ttl"


@cache
def bytes_for_each_object() -> float:
    """Return the bytes that the controller holds for each of 10,000 ConfigMaps with a time to live."""

    async def work(client: Client, controller: CleanupController) -> float:
        await asyncio.sleep(3)  # until every watch has its connection
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        await _fill(client, lambda _number: "1h")
        while len(controller.times_to_live) < OBJECTS:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return used / OBJECTS

    return asyncio.run(_with_controller(work))


@cache
def worst_lateness() -> float:
    """Return the most seconds by which one of 10,000 deletions came after it was due."""

    async def work(client: Client, controller: CleanupController) -> float:
        begin = time.time() + 30
        due = {f"n{number}": int(begin + number * SPREAD_SECONDS / OBJECTS) for number in range(OBJECTS)}
        watching = asyncio.create_task(_latest(client, due))
        await _fill(client, lambda number: datetime.fromtimestamp(due[f"n{number}"], UTC).strftime("%Y-%m-%dT%H%M%SZ"))
        if time.time() > begin:
            raise RuntimeError("the objects were not created before the first of them was due")
        return await watching

    return asyncio.run(_with_controller(work))


async def _latest(client: Client, due: dict[str, int]) -> float:
    """Wait until everything is deleted; both clocks are those of this machine."""
    left, worst = set(due), 0.0
    while left:
        path, query = resource_path(_MAPS, "default"), {"watch": "1", "labelSelector": _TTL, "resourceVersion": "1"}
        async for event in client.stream(path, query=query, idle_seconds=SPREAD_SECONDS * 2):
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                lateness = time.time() - due[name]
                if lateness < 0:
                    raise RuntimeError(f"{name} was deleted {-lateness:.1f} seconds early")
                worst = max(worst, lateness)
                left.discard(name)
                if not left:
                    break
    return worst


async def _fill(client: Client, ttl: Callable[[int], str]) -> None:
    async def create(numbers: range) -> None:
        for number in numbers:
            metadata = {"name": f"n{number}", "labels": {_TTL: ttl(number)}}
            await client.create(_MAPS, {"metadata": metadata, "data": {"text": "x" * 1000}}, "default")

    await asyncio.gather(*(create(range(start, OBJECTS, 8)) for start in range(8)))


async def _with_controller(work: Callable[[Client, CleanupController], Awaitable[float]]) -> float:
    async with _server() as access, Client(access, qps=0) as client:
        await install_definitions(client)
        if not any(each["metadata"]["name"] == "kyverno" for each in (await client.list(_NAMESPACES))["items"]):
            await client.create(_NAMESPACES, {"metadata": {"name": "kyverno"}})
        controller, stop = CleanupController(access, CleanupSettings()), asyncio.Event()
        running = asyncio.create_task(controller.run(stop))
        try:
            while not controller.is_idle and not running.done():
                await asyncio.sleep(0.05)
            return await work(client, controller)
        finally:
            stop.set()
            await running


@asynccontextmanager
async def _server() -> AsyncIterator[Access]:
    """Run a sandbox in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.sandboxing", stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        told: dict[str, Any] = json.loads(await process.stdout.readline())
        yield load_kubeconfig(told["kubeconfig"], environment={})
    finally:
        process.stdin.close()
        await process.wait()
