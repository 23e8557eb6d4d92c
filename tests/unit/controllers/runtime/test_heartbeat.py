"""The heartbeat of the leader: a lease and its age, deleted with the last replica."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.leases import LEASES
from pyverno.controllers.runtime.heartbeat import Heartbeat
from pyverno.kube.status import StatusError

START = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time


def play(scene: Callable[[Client, Heartbeat, Clock], Awaitable[None]]) -> None:
    """Run a scene in a fresh cluster."""

    async def run() -> None:
        async with (
            Sandbox(Settings(controllers=False)) as sandbox,
            Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client,
        ):
            clock = Clock()
            await scene(client, Heartbeat(client, "default", seconds=0.01, now=clock), clock)

    asyncio.run(run())


def test_a_beat_makes_the_lease_and_then_moves_its_time() -> None:
    """The lease has the label that the webhook selects."""

    async def scene(client: Client, heartbeat: Heartbeat, clock: Clock) -> None:
        for minutes in (0, 1):
            clock.time = START + timedelta(minutes=minutes)
            await heartbeat.beat()
            lease = await client.get(LEASES, "kyverno-health", "default")
            assert {"app.kubernetes.io/name": "kyverno"} == lease["metadata"]["labels"]
            said = lease["metadata"]["annotations"]["kyverno.io/last-request-time"]
            assert f"2026-11-22T10:0{minutes}:00Z" == said

    play(scene)


def test_a_lease_is_young_for_a_hundred_seconds() -> None:
    """A missing or invalid time is a problem as well."""

    async def scene(client: Client, heartbeat: Heartbeat, clock: Clock) -> None:
        assert "the lease kyverno-health has no valid time" == await heartbeat.problem()
        await heartbeat.beat()
        clock.time = START + timedelta(seconds=99)
        assert "" == await heartbeat.problem()
        clock.time = START + timedelta(seconds=100)
        assert "the lease kyverno-health is 100 seconds old" == await heartbeat.problem()
        await client.patch(
            LEASES, "kyverno-health", {"metadata": {"annotations": {"kyverno.io/last-request-time": "now"}}}, "default"
        )
        assert "the lease kyverno-health has no valid time" == await heartbeat.problem()

    play(scene)


def test_its_controller_notifies_after_every_beat_also_one_that_failed() -> None:
    """The notification triggers the reconcile of webhooks, which a failed beat must not prevent."""

    async def scene(client: Client, heartbeat: Heartbeat, clock: Clock) -> None:
        lost = Heartbeat(client, "nowhere", seconds=0.01, now=clock)
        for each in (heartbeat, lost):
            told = asyncio.Event()
            running = asyncio.create_task(each.controller(told.set).run())
            await asyncio.wait_for(told.wait(), 60)
            told.clear()
            await asyncio.wait_for(told.wait(), 60)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    play(scene)


def test_the_lease_is_deleted_if_it_exists() -> None:
    """Removing an absent lease is no error."""

    async def scene(client: Client, heartbeat: Heartbeat, clock: Clock) -> None:
        await heartbeat.remove()
        await heartbeat.beat()
        await heartbeat.remove()
        try:
            await client.get(LEASES, "kyverno-health", "default")
        except StatusError as error:
            assert 404 == error.status
        else:
            raise AssertionError("the lease is still there")

    play(scene)
