"""The status of GlobalContextEntry objects: the leader writes it, from the state of its own replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer
from pyverno.controllers.runtime.events import Event
from pyverno.controllers.state.entrystatus import EntryStatus
from pyverno.controllers.state.globalcontext import ENTRY_VERSIONS
from pyverno.engine.result import ResourceRef
from pyverno.kube.json import JSONObject
from tests.unit.controllers.state.test_clusterstate import cluster

ENTRIES = ENTRY_VERSIONS[0]
PROBLEM = "things have not been refreshed for more than 30 seconds: Forbidden"
ENTRY: JSONObject = {
    "apiVersion": "kyverno.io/v2",
    "kind": "GlobalContextEntry",
    "metadata": {"name": "things"},
    "spec": {"kubernetesResource": {"group": "example.com", "version": "v1", "resource": "things"}},
}
REFERENCE = ResourceRef("kyverno.io/v2", "GlobalContextEntry", "", "things")


@asynccontextmanager
async def replica(client: Client, events: list[Event]) -> AsyncIterator[EntryStatus]:
    """Run the entry status of one replica that does not lead yet."""
    found = EntryStatus(client, lambda: ENTRIES, events.append)
    informer = Informer(client, ENTRIES)
    informer.listen(found.take)
    running = asyncio.create_task(informer.run())
    try:
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def leading(status: EntryStatus) -> AsyncIterator[None]:
    """Let a replica lead for a while."""
    running = asyncio.create_task(status.controller.run())
    try:
        yield
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until_ready_is(client: Client, wanted: tuple[str, str, str]) -> JSONObject:
    """Wait for status, reason and message of the condition `Ready`; return the whole status."""
    found: JSONObject = {}
    async with asyncio.timeout(60):
        while True:
            found = (await client.get(ENTRIES, "things")).get("status") or {}
            said = [(each["status"], each["reason"], each["message"]) for each in found.get("conditions") or ()]
            if said == [wanted]:
                return found
            await asyncio.sleep(0.05)


def play(scene: Callable[[Client], Awaitable[None]]) -> None:
    """Play a scene in a cluster with one entry."""

    async def run() -> None:
        async with cluster() as client:
            await client.create(ENTRIES, ENTRY)
            await scene(client)

    asyncio.run(run())


def test_a_new_leader_writes_the_state_that_it_knew_before() -> None:
    """The previous leader may have written no status, or another one."""

    async def scene(client: Client) -> None:
        events: list[Event] = []
        async with replica(client, events) as first, replica(client, events) as second:
            first.note(REFERENCE, "", "")
            second.note(REFERENCE, "", PROBLEM)
            async with leading(first):
                await until_ready_is(client, ("True", "Succeeded", ""))
            async with leading(second):
                await until_ready_is(client, ("False", "Failed", PROBLEM))
                second.note(REFERENCE, "", "")
                await until_ready_is(client, ("True", "Succeeded", ""))

    play(scene)


def test_a_status_that_another_writer_changed_is_restored() -> None:
    """No event of the entry is needed."""

    async def scene(client: Client) -> None:
        async with replica(client, []) as status, leading(status):
            status.note(REFERENCE, "", PROBLEM)
            await until_ready_is(client, ("False", "Failed", PROBLEM))
            wiped: JSONObject = {"status": {"conditions": []}}
            await client.patch(ENTRIES, "things", wiped, subresource="status")
            await until_ready_is(client, ("False", "Failed", PROBLEM))

    play(scene)


def test_the_time_of_a_refresh_never_goes_back() -> None:
    """A new leader may have refreshed its data earlier than the old one."""
    later = "2999-01-01T00:00:00Z"

    async def scene(client: Client) -> None:
        async with replica(client, []) as status:
            status.note_refresh(REFERENCE, "")
            async with leading(status):
                written = await until_ready_is(client, ("True", "Succeeded", ""))
                assert written["lastRefreshTime"]
            await client.patch(ENTRIES, "things", {"status": {"lastRefreshTime": later}}, subresource="status")
            async with asyncio.timeout(60):
                while status._states["things"].written.get("lastRefreshTime") != later:
                    await asyncio.sleep(0.02)
            async with leading(status):
                status.note_refresh(REFERENCE, "")
                status.note(REFERENCE, "", PROBLEM)
                await until_ready_is(client, ("False", "Failed", PROBLEM))
            assert later == (await client.get(ENTRIES, "things"))["status"]["lastRefreshTime"]

    play(scene)


def test_every_replica_reports_by_event_and_metric() -> None:
    """A replica need not lead; a repeated reason is reported once."""

    async def scene(client: Client) -> None:
        events: list[Event] = []
        async with replica(client, events) as status:
            status.note(REFERENCE, "", PROBLEM)
            status.note(REFERENCE, "", PROBLEM)
            assert [("Retrying", PROBLEM)] == [(each.action, each.note) for each in events]
            assert {("things",): 1.0} == dict(status.unavailable())
            status.note(REFERENCE, "", "")
            assert ({("things",): 0.0}, 1) == (dict(status.unavailable()), len(events))

    play(scene)
