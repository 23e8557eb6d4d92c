"""The global context against an API server and a service: followed lists, and answers that are refreshed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.egressrules import EgressRules
from pyverno.cluster.informer import Notice
from pyverno.controllers.state.globalcontext import GlobalContext
from pyverno.controllers.state.globalentries import ListedEntry, PolledEntry
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.globalcontext import ExternalApiCall, KubernetesResource
from tests.support.services import Service

CONFIG_MAPS = GVR("", "v1", "configmaps")
NAMES: JSONObject = {"name": "names", "jmesPath": "[].metadata.name"}
Play = Callable[["World"], Awaitable[None]]


class World:
    """A cluster, a service, and a global context between them."""

    def __init__(self, client: Client, service: Service, context: GlobalContext, refreshed: list[str]) -> None:
        self.client = client
        self.service = service
        self.context = context
        self.refreshed = refreshed
        self.told: list[tuple[str, str]] = []

    def take(self, name: str, notice: Notice = Notice.ADDED, **spec: Any) -> None:
        """Deliver an event of an entry."""
        self.context.take(
            notice,
            {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": name}, "spec": spec},
        )

    async def become(self, name: str, expected: JSON) -> None:
        """Wait until an entry has this value, or until its error has this text."""
        found: JSON = None
        for _ in range(3000):
            try:
                found = self.context.get(name)
            except HostError as error:
                found = error.message
            if found == expected:
                return
            await asyncio.sleep(0.02)
        assert expected == found

    async def hear(self, name: str, error: str) -> None:
        """Wait until this is the latest notification for an entry."""
        async with asyncio.timeout(60):
            while (name, error) not in self.told[-1:]:
                await asyncio.sleep(0.02)


def play(work: Play, service: Service | None = None, *, most: int = 0) -> World:
    """Run a scene in a world of its own."""

    async def run() -> World:
        refreshed: list[str] = []
        told: list[tuple[str, str]] = []

        def note(entry: ResourceRef, uid: str) -> None:
            refreshed.append(entry.name)

        def tell(entry: ResourceRef, uid: str, error: str) -> None:
            told.append((entry.name, error))

        sandbox = Sandbox(Settings(controllers=False))
        await sandbox.start()
        egress = Egress(EgressSettings(EgressRules.read(()), seconds=60))
        try:
            async with Client(load_kubeconfig(sandbox.kubeconfig), qps=0) as client, service or Service() as running:
                context = GlobalContext(client, egress, max_entries=most, on_refresh=note, on_state=tell)
                world = World(client, running, context, refreshed)
                world.told = told
                try:
                    await work(world)
                finally:
                    await context.close()
                    await egress.close()
        finally:
            await sandbox.stop()
        return world

    return asyncio.run(run())


def _config_map(name: str, **data: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _resource(namespace: str = "default") -> JSONObject:
    return {"version": "v1", "resource": "configmaps", "namespace": namespace}


def test_the_objects_of_a_resource_are_followed() -> None:
    """The list has whole objects in order of their names; it and its projections follow every change."""

    async def work(world: World) -> None:
        await world.client.create(CONFIG_MAPS, _config_map("b", x="1"), "default")
        world.take("maps", kubernetesResource=_resource(), projections=[NAMES])
        await world.become("maps.names", ["b"])
        await world.client.create(CONFIG_MAPS, _config_map("a"), "default")
        await world.become("maps.names", ["a", "b"])
        assert [("ConfigMap", None), ("ConfigMap", {"x": "1"})] == [
            (each["kind"], each.get("data")) for each in world.context.get("maps")
        ]
        await world.client.delete(CONFIG_MAPS, "b", "default")
        await world.become("maps.names", ["a"])
        await world.become("maps.other", 'projection "other" not found')

    play(work)


def test_projections_are_worked_out_once_for_each_change() -> None:
    """The first read computes a projection, which stays cached until the next change."""

    async def work(world: World) -> None:
        world.take("maps", kubernetesResource=_resource(), projections=[NAMES])
        assert not world.context.is_cached("maps.names")
        await world.become("maps.names", [])
        assert world.context.is_cached("maps.names")
        assert world.context.get("maps.names") is world.context.get("maps.names")
        await world.client.create(CONFIG_MAPS, _config_map("a"), "default")
        for _ in range(3000):
            if not world.context.is_cached("maps.names"):
                break
            await asyncio.sleep(0.02)
        assert not world.context.is_cached("maps.names")
        assert ["a"] == world.context.get("maps.names")

    play(work)


def test_a_projection_that_fails_keeps_its_last_value() -> None:
    """Other projections are still updated; without an earlier value there is none."""

    async def work(world: World) -> None:
        await world.client.create(CONFIG_MAPS, _config_map("a", number="1"), "default")
        number: JSONObject = {"name": "number", "jmesPath": "to_upper([0].data.number)"}
        world.take("maps", kubernetesResource=_resource(), projections=[number, NAMES])
        await world.become("maps.number", "1")
        await world.client.delete(CONFIG_MAPS, "a", "default")
        await world.become("maps.names", [])
        assert "1" == world.context.get("maps.number")

    play(work)


def test_a_resource_that_is_not_served_is_an_error_and_no_empty_list() -> None:
    """Until its data arrive an entry yields an error, which failurePolicy handles."""

    async def work(world: World) -> None:
        world.take("none", kubernetesResource={"group": "example.com", "version": "v1", "resource": "things"})
        world.take("maps", kubernetesResource={"version": "v1", "resource": "configmaps", "namespace": "default"})
        await world.become("maps", [])  # this later entry has its data
        await world.become("none", "the data of global context entry `none` are not there yet")

    play(work)


def test_an_api_call_is_repeated_after_its_interval() -> None:
    """The path may have a query, as in policies; every successful answer is reported as a refresh."""

    async def work(world: World) -> None:
        call = {"urlPath": "/api/v1/namespaces/default/configmaps?limit=1", "refreshInterval": "100ms"}
        world.take("maps", apiCall=call, projections=[{"name": "count", "jmesPath": "length(items)"}])
        await world.become("maps.count", 0)
        assert "ConfigMapList" == world.context.get("maps")["kind"]
        await world.client.create(CONFIG_MAPS, _config_map("a"), "default")
        await world.become("maps.count", 1)
        await world.become("maps.other", "no data available")

    assert {"maps"} == set(play(work).refreshed)


def test_a_call_of_a_service_has_method_headers_and_data() -> None:
    """The request carries exactly what the entry specifies."""

    async def work(world: World) -> None:
        service = {"url": world.service.url("/teams"), "headers": [{"key": "X-Team", "value": "blue"}]}
        world.take("teams", apiCall={"method": "POST", "data": [{"key": "a", "value": [1]}], "service": service})
        await world.become("teams", {"ok": True})

    (asked,) = play(work).service.asked
    assert ("POST", "/teams", b'{"a":[1]}', "blue") == (asked.method, asked.path, asked.body, asked.headers["X-Team"])


def test_an_error_lasts_until_the_next_successful_call() -> None:
    """After some failed attempts rules see the error, until an attempt succeeds."""
    statuses = [500, 500, 200]
    service = Service(
        {"/": lambda: web.json_response({"left": len(statuses)}, status=statuses.pop(0) if statuses else 200)}
    )

    async def work(world: World) -> None:
        call = {"service": {"url": world.service.url()}, "retryLimit": 2, "refreshInterval": "300ms"}
        world.take("flaky", apiCall=call)
        await world.become("flaky", "HTTP 500")
        assert 2 == len(world.service.asked)
        assert [] == world.refreshed
        await world.become("flaky", {"left": 0})

    assert [("flaky", "HTTP 500")] == play(work, service).told


def test_an_entry_may_be_missing_invalid_or_one_too_many() -> None:
    """Rules see a missing entry only when it does not exist; other entries yield an error with the reason."""

    async def work(world: World) -> None:
        with pytest.raises(HostUnavailableError, match="failed to fetch entry key=nothing"):
            world.context.get("nothing")
        world.take("odd", kubernetesResource=_resource(), apiCall={"urlPath": "/version"})
        await world.become(
            "odd",
            "global context entry `odd` is not valid: spec.kubernetesResource: "
            "A global context entry should either have KubernetesResource or APICall",
        )
        world.take("second", kubernetesResource=_resource())
        await world.become("second.x", "global context entry `second` was not taken: there are already 1 of them")
        world.take("odd", Notice.DELETED)
        await world.become("second", [])
        await world.hear("second", "")

    told = play(work, most=1).told
    assert ("second", "there are already 1 global context entries") in told
    assert "odd" in {name for name, error in told if error.startswith("global context entry `odd` is not valid")}


def test_a_failing_projection_is_reported() -> None:
    """Rules see its last value; the notification for the entry has the reason."""

    async def work(world: World) -> None:
        odd = {"name": "odd", "jmesPath": "to_upper([0].data.number)"}
        world.take("maps", kubernetesResource=_resource(), projections=[odd])
        await world.client.create(CONFIG_MAPS, _config_map("a"), "default")
        for _ in range(3000):
            with suppress(HostError):
                await asyncio.to_thread(world.context.get, "maps.odd")
            if any(error for _, error in world.told):
                return
            await asyncio.sleep(0.02)

    told = play(work).told
    assert any(error.startswith('failed to apply projection "odd": ') for _, error in told)


def test_a_changed_spec_makes_a_new_entry_and_a_changed_status_does_not() -> None:
    """Status writes of the controller must not restart the entry."""

    async def work(world: World) -> None:
        call = {"service": {"url": world.service.url("/one")}, "refreshInterval": "1h"}
        world.take("teams", apiCall=call)
        await world.become("teams", {"ok": True})
        world.take("teams", Notice.MODIFIED, apiCall=call)
        world.take("teams", Notice.MODIFIED, apiCall={**call, "service": {"url": world.service.url("/two")}})
        for _ in range(3000):
            if len(world.service.asked) > 1:
                break
            await asyncio.sleep(0.02)
        assert ["/one", "/two"] == [each.path for each in world.service.asked]

    play(work)


def test_names_of_entries_may_have_dots() -> None:
    """The longest matching name is the entry; the rest is the projection."""

    async def work(world: World) -> None:
        world.take("team.maps", kubernetesResource=_resource(), projections=[NAMES])
        await world.become("team.maps", [])
        await world.become("team.maps.names", [])

    play(work)


def test_a_bug_in_a_call_leaves_no_answer_that_counts_for_ever() -> None:
    """Rules see an error, not the last answer; the next call that succeeds ends it."""
    answers: list[JSON | Exception] = [{"a": 1}, KeyError(7, None), MemoryError(), {"a": 2}]
    seen: list[JSON] = []

    async def fetch(_call: ExternalApiCall) -> JSON:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> None:
        call = ExternalApiCall(refresh_interval="10ms", retry_limit=1)
        entry = PolledEntry("odd", fetch, call, {}, on_refresh=lambda: None, on_state=lambda _reason: None)
        async with asyncio.timeout(60):
            while {"a": 2} not in seen:
                with suppress(HostError):
                    seen.append(entry.read(""))
                if len(answers) == 2:
                    with pytest.raises(HostError, match="an internal error occurred"):
                        entry.read("")
                    entry.wake()
                await asyncio.sleep(0.01)
        await entry.stop()

    asyncio.run(run())


def test_a_bug_of_a_listener_ends_no_entry() -> None:
    """What cannot report refreshes and errors goes on polling: otherwise the last response would stand for ever."""
    answers: list[JSON | Exception] = [{"a": 1}, HostError("away"), {"a": 2}]
    seen: list[JSON] = []

    async def fetch(_call: ExternalApiCall) -> JSON:
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    def broken(*_: str) -> None:
        raise KeyError

    async def run() -> None:
        call = ExternalApiCall(url_path="/x", refresh_interval="10ms", retry_limit=1)
        entry = PolledEntry("odd", fetch, call, {}, on_refresh=broken, on_state=broken)
        async with asyncio.timeout(60):
            while {"a": 2} not in seen:
                with suppress(HostError):
                    seen.append(entry.read(""))
                entry.wake()
                await asyncio.sleep(0.01)
        await entry.stop()

    asyncio.run(run())


def test_a_bug_of_one_projection_leaves_the_others() -> None:
    """A rule that reads another projection of the entry does not hear of it."""

    def broken(data: JSON) -> JSON:
        raise ZeroDivisionError

    async def work(world: World) -> None:
        await world.client.create(CONFIG_MAPS, _config_map("a"), "default")
        projections: Any = {"broken": broken, "count": len}
        resource = KubernetesResource(version="v1", resource="configmaps", namespace="default")
        entry = ListedEntry("maps", world.client, resource, projections, on_state=lambda _: None)
        async with asyncio.timeout(60):
            while True:
                with suppress(HostError):
                    if entry.read("count"):
                        break
                await asyncio.sleep(0.01)
        with pytest.raises(HostError, match='projection "broken" not found'):
            entry.read("broken")
        await entry.stop()

    play(work)
