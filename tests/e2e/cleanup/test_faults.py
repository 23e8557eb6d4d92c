"""Times to live when processes are killed, clocks are wrong, leaders are isolated and requests fail.

The history of deletions is the judge: everything that was due is gone, nothing went early, and nothing else went. With
PYVERNO_E2E the runs have their full size.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import Access, load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.cleanup.controller import CleanupController, CleanupSettings
from pyverno.errors import HostError
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
from pyverno.testing import install_definitions
from tests.support.stormproxy import stormy

IS_FULL: Final = bool(os.environ.get("PYVERNO_E2E"))
IS_NIGHTLY: Final = bool(os.environ.get("PYVERNO_NIGHTLY"))
MAPS: Final = GVR("", "v1", "configmaps")
TTL: Final = "cleanup.kyverno.io/ttl"
LATE_SECONDS: Final = 60.0


@dataclass
class Scene:
    """A cluster, and when each of its labelled objects was deleted, by the clock of the cluster."""

    sandbox: Sandbox
    client: Client
    chance: Random
    due: dict[str, float] = field(default_factory=dict)
    deleted: dict[str, list[float]] = field(default_factory=dict)

    async def fill(self, count: int, seconds: float) -> None:
        """Create objects that are due within some seconds, and as many that are not."""
        for number in range(count):
            lifetime = self.chance.uniform(1, seconds)
            for name, text in ((f"short-{number}", f"{lifetime:.3f}s"), (f"long-{number}", "1h")):
                metadata = {"name": name, "labels": {TTL: text}}
                made = await self.client.create(MAPS, {"metadata": metadata}, "default")
                created = datetime.fromisoformat(made["metadata"]["creationTimestamp"]).timestamp()
                self.due[name] = created + (lifetime if text != "1h" else 3600)

    async def follow(self) -> None:
        """Note every deletion; the newest version of a watch that ended is where the next one begins."""
        version = "1"
        while True:
            query = {"watch": "1", "labelSelector": TTL, "resourceVersion": version}
            async for event in self.client.stream(resource_path(MAPS, "default"), query=query):
                metadata = event["object"]["metadata"]
                version = metadata["resourceVersion"]
                if event["type"] == "DELETED":
                    self.deleted.setdefault(metadata["name"], []).append(self.sandbox.now().timestamp())

    def problems(self) -> list[str]:
        """Return the objects that were deleted early, twice or wrongly."""
        found = [f"{name} was deleted {len(times)} times" for name, times in self.deleted.items() if len(times) > 1]
        found += [
            f"{name} was deleted {self.due[name] - times[0]:.2f} seconds early"
            for name, times in self.deleted.items()
            if times[0] < self.due[name]
        ]
        return found

    async def done(self) -> None:
        """Wait until all due objects are deleted, then compare the history with the expected deletions.

        There must be progress all the time: on a busy machine many deletions take long, but none is stuck.
        """
        short = {name for name in self.due if name.startswith("short")}
        left = max(self.due[name] for name in short) - self.sandbox.now().timestamp()
        seen = -1
        while seen < len(self.deleted) and not short <= self.deleted.keys():
            seen = len(self.deleted)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left, 0.0) + LATE_SECONDS):
                    while not short <= self.deleted.keys():
                        await asyncio.sleep(0.05)
        assert [] == self.problems()
        assert short == self.deleted.keys()


@asynccontextmanager
async def scene(minutes: float = 0) -> AsyncIterator[Scene]:
    """Run a cluster whose clock differs by some minutes from that of this machine, and so from its controllers'."""
    shift = timedelta(minutes=minutes)
    settings = Settings(controllers=False, namespaces=("kyverno",), clock=lambda: datetime.now(UTC) + shift)
    async with (
        Sandbox(settings) as sandbox,
        Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
    ):
        await install_definitions(client)
        found = Scene(sandbox, client, Random(7))  # noqa: S311 - a test that can be repeated
        following = asyncio.create_task(found.follow())
        try:
            yield found
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


class Replica:
    """A cleanup controller in this process; one that cannot start is started again, as a Deployment does.

    A lease that another replica shall take needs a short `retry`; on a busy machine it is lost now and then.
    """

    def __init__(self, access: Access, name: str = "one", retry: float = 5.0) -> None:
        self._access = access
        self._settings = CleanupSettings(identity=name, qps=0, lease_retry=retry, ttl_seconds=1.0, clock_seconds=1.0)
        self._stop = asyncio.Event()
        self._controller: CleanupController | None = None

    @property
    def is_leader(self) -> bool:
        """Return whether it holds the lease."""
        return self._controller is not None and self._controller.is_leader

    async def __aenter__(self) -> Replica:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while not self._stop.is_set():
            self._controller = CleanupController(self._access, self._settings)
            try:
                await self._controller.run(self._stop)
            except (HostError, StatusError):
                await asyncio.sleep(0.1)


async def started(kubeconfig: str, number: int) -> asyncio.subprocess.Process:
    """Start the controller as a process, as a Deployment does."""
    words = ["--kubeconfig", kubeconfig, "--leaderElectionRetryPeriod=500ms", "--disableMetrics", "--healthPort=0"]
    words += ["--ttlReconciliationInterval=1s", "--clientRateLimitQPS=1000", "--v=0"]
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pyverno", "controller", "cleanup", *words),
        env={**os.environ, "KYVERNO_POD_NAME": f"pod-{number}"},
        stderr=asyncio.subprocess.DEVNULL,
    )


def test_a_controller_that_is_killed_deletes_everything_and_nothing_early(tmp_path: Path) -> None:
    """The controller is killed repeatedly at random points, in a cluster whose clock is ten minutes ahead."""
    count, kills = (2_000, 200 if IS_NIGHTLY else 20) if IS_FULL else (60, 2)

    async def run() -> None:
        async with scene(minutes=10) as found:
            await found.fill(count, 10.0)
            for number in range(kills):
                process = await started(found.sandbox.kubeconfig, number)
                await asyncio.sleep(found.chance.uniform(2.0, 8.0))
                process.kill()
                await process.wait()
            process = await started(found.sandbox.kubeconfig, kills)
            try:
                await found.done()
            finally:
                process.kill()
                await process.wait()

    asyncio.run(run())


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_wrong_clock_deletes_nothing_early(minutes: int) -> None:
    """The controller is ten minutes behind the API server, or ahead of it."""
    count = 500 if IS_FULL else 40

    async def run() -> None:
        async with scene(minutes) as found, Replica(load_kubeconfig(found.sandbox.kubeconfig, environment={})):
            await found.fill(count, 6.0)
            await found.done()

    asyncio.run(run())


def test_a_storm_of_failures_loses_nothing() -> None:
    """Refused, expired and lost answers: each deletion is made once all the same."""
    count, seeds = (300, 50) if IS_FULL else (60, 1)

    async def run(seed: int) -> None:
        async with scene() as found, stormy(found.client, seed, 0.1) as (proxy, access), Replica(access):
            await found.fill(count, 5.0)
            await found.done()
            assert proxy.broken > 0

    for seed in range(seeds):
        asyncio.run(run(seed))


def test_an_isolated_leader_stops_before_another_one_begins() -> None:
    """At no moment do two replicas delete, and what is due is deleted whoever leads."""
    times = 50 if IS_FULL else 2

    async def run() -> None:
        async with (
            scene() as found,
            stormy(found.client, 1, 0.0) as (first, one),
            stormy(found.client, 2, 0.0) as (second, two),
            Replica(one, "one", 0.3) as left,
            Replica(two, "two", 0.3) as right,
        ):
            overlaps: list[str] = []
            watching = asyncio.create_task(_watch(left, right, overlaps))
            await found.fill(20 * times, (1.5 if IS_FULL else 4.0) * times)
            for _ in range(times):
                leader = await _wait_for(lambda: first if left.is_leader else second if right.is_leader else None)
                leader.is_away = True
                other = right if leader is first else left
                await _wait_for(lambda other=other: other.is_leader)  # type: ignore[misc]
                leader.is_away = False
            await found.done()
            watching.cancel()
            assert [] == overlaps

    asyncio.run(run())


async def _watch(left: Replica, right: Replica, overlaps: list[str]) -> None:
    while True:
        if left.is_leader and right.is_leader:
            overlaps.append("both lead")
        await asyncio.sleep(0.005)


async def _wait_for(holds: Callable[[], object]) -> object:
    async with asyncio.timeout(LATE_SECONDS):
        while not (found := holds()):
            await asyncio.sleep(0.02)
        return found
