"""Global context entries with an unavailable source: an error within the bound, and fresh data after recovery."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from pyverno.cluster.client import Client
from pyverno.cluster.egress import Egress, EgressSettings
from pyverno.cluster.informer import Notice
from pyverno.controllers.state.globalcontext import GlobalContext
from pyverno.engine.result import ResourceRef
from pyverno.errors import HostError
from pyverno.kube.json import JSON
from tests.support.apiserver import Script, serving, status, watch

BOUND = 0.5
THINGS = "/apis/example.com/v1/things"
LIST, WATCH, GET = f"GET {THINGS}", f"WATCH {THINGS}", "GET /apis/example.com/v1/answer"
NAMES = {"name": "names", "jmesPath": "[].metadata.name"}
RESOURCE = {"kubernetesResource": {"group": "example.com", "version": "v1", "resource": "things"}}
OLD = "the data of global context entry `things` are too old to rely on"


async def silent(request: web.BaseRequest) -> web.StreamResponse:
    """Accept the request and never answer."""
    await asyncio.sleep(30)
    return web.Response()


async def aborted(request: web.BaseRequest) -> web.StreamResponse:
    """Break the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


TROUBLES: dict[str, Any] = {
    "refused": status(403, "Forbidden"),
    "definition-gone": status(404, "NotFound"),
    "aggregated-api-away": status(503, "ServiceUnavailable"),
    "connection-refused": aborted,
    "silent": silent,
    "storm-of-410": status(410, "Expired"),
}


def things(version: str, *names: str) -> dict[str, Any]:
    """Return a list of things."""
    items = [{"metadata": {"name": name, "resourceVersion": version}} for name in names]
    return {
        "apiVersion": "example.com/v1",
        "kind": "ThingList",
        "metadata": {"resourceVersion": version},
        "items": items,
    }


class Scene:
    """A global context with a scripted API server, and its notifications."""

    def __init__(self, script: Script, context: GlobalContext, told: list[str]) -> None:
        self.script = script
        self.context = context
        self.told = told

    def take(self, **spec: Any) -> None:
        """Create the entry."""
        body = {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": "things"}}
        self.context.take(Notice.ADDED, {**body, "spec": spec})

    def read(self, name: str) -> JSON:
        """Return data, or the text of the error."""
        try:
            return self.context.get(name)
        except HostError as error:
            return error.message

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.01)


def play(work: Callable[[Scene], Awaitable[None]]) -> None:
    """Run a scene."""

    async def run() -> None:
        async with serving() as (script, client):
            await _with_context(script, client, work)

    asyncio.run(run())


async def _with_context(script: Script, client: Client, work: Callable[[Scene], Awaitable[None]]) -> None:
    told: list[str] = []

    def tell(_entry: ResourceRef, _uid: str, error: str) -> None:
        told.append(error)

    egress = Egress(EgressSettings())
    context = GlobalContext(
        client, egress, bound=BOUND, on_state=tell, on_refresh=lambda entry, uid: tell(entry, uid, "")
    )
    try:
        await work(Scene(script, context, told))
    finally:
        await context.close()
        await egress.close()


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_objects_that_cannot_be_followed_are_an_error_within_the_bound(trouble: Any) -> None:
    """Stale data could allow a request that names a deleted object; after recovery the new data count."""

    async def work(scene: Scene) -> None:
        scene.script.on(LIST, things("5", "a"))
        scene.script.on(WATCH, watch())
        scene.take(**RESOURCE, projections=[NAMES])
        await scene.until(lambda: scene.read("things.names") == ["a"])
        scene.script.on(LIST, trouble)
        scene.script.on(WATCH, trouble)
        await scene.until(lambda: scene.read("things.names") == OLD)
        assert OLD == scene.read("things")
        await scene.until(lambda: scene.told[-1].startswith("things have not been refreshed for more than 0.5 seconds"))

        scene.script.on(LIST, things("9", "b"))
        scene.script.on(WATCH, watch())
        scene.context.wake()
        await scene.until(lambda: scene.read("things.names") == ["b"])
        await scene.until(lambda: scene.told[-1] == "")

    play(work)


def test_a_watch_that_brings_nothing_does_not_keep_old_objects() -> None:
    """A list shows the changes that a silent watch withheld."""

    async def work(scene: Scene) -> None:
        scene.script.on(LIST, things("5", "a"), things("9", "b"))
        scene.script.on(WATCH, watch())
        scene.take(**RESOURCE, projections=[NAMES])
        await scene.until(lambda: scene.read("things.names") == ["a"])
        await scene.until(lambda: scene.read("things.names") == ["b"])
        assert "" == "".join(scene.told)

    play(work)


def test_the_last_value_of_a_projection_that_fails_counts_for_the_bound() -> None:
    """The list is fresh, but the projection has no current value."""

    async def work(scene: Scene) -> None:
        scene.script.on(LIST, things("5", "a"), things("9"))
        scene.script.on(WATCH, watch())
        scene.take(**RESOURCE, projections=[{"name": "first", "jmesPath": "to_upper([0].metadata.name)"}, NAMES])
        await scene.until(lambda: scene.read("things.first") == "A")
        await scene.until(lambda: scene.read("things.names") == [])
        assert "A" == scene.read("things.first")
        reason = 'failed to apply projection "first": '
        await scene.until(lambda: str(scene.read("things.first")).startswith(reason))
        await scene.until(lambda: scene.told[-1].startswith(reason))

    play(work)


def test_a_new_resource_is_followed_at_once() -> None:
    """Until then the entry reports the reason, once the first list is overdue."""

    async def work(scene: Scene) -> None:
        scene.script.on(LIST, status(404, "NotFound"))
        scene.take(**RESOURCE, projections=[NAMES])
        await scene.until(lambda: bool(scene.told))
        reason = "failed to sync cache for example.com/v1/things: the resource may not exist in the cluster: NotFound"
        assert [reason] == scene.told
        scene.script.on(LIST, things("5", "a"))
        scene.script.on(WATCH, watch())
        asked = len(scene.script.asked)
        scene.context.wake()
        await scene.until(lambda: scene.read("things.names") == ["a"])
        assert [LIST] == [f"{each.method} {each.path}" for each in scene.script.asked[asked:]][:1]

    play(work)


def test_an_answer_is_no_older_than_its_interval_and_the_bound() -> None:
    """An API that never answers yields an error, and is retried long before the interval ends."""

    async def work(scene: Scene) -> None:
        scene.script.on(GET, {"a": 1})
        call = {"urlPath": "/apis/example.com/v1/answer", "refreshInterval": "200ms"}
        scene.take(apiCall=call)
        await scene.until(lambda: scene.read("things") == {"a": 1})
        scene.script.on(GET, silent)
        await scene.until(lambda: scene.read("things") == "no answer within 0.5 seconds")
        assert "no answer within 0.5 seconds" == scene.told[-1]
        scene.script.on(GET, {"a": 2})
        await scene.until(lambda: scene.read("things") == {"a": 2})
        assert "" == scene.told[-1]

    play(work)


def test_a_failed_api_call_is_repeated_at_once_when_the_served_resources_change() -> None:
    """The retry does not wait for an interval of one hour."""

    async def work(scene: Scene) -> None:
        scene.script.on(GET, status(503, "ServiceUnavailable"))
        scene.take(apiCall={"urlPath": "/apis/example.com/v1/answer", "refreshInterval": "1h", "retryLimit": 1})
        await scene.until(lambda: scene.read("things") == "ServiceUnavailable")
        scene.script.on(GET, {"a": 1})
        scene.context.wake()
        await scene.until(lambda: scene.read("things") == {"a": 1})

    play(work)
