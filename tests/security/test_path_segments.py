"""I1 and I2: a name or a namespace is one segment of a path, whatever it was made of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.cluster.host import ClusterHost
from pyverno.engine.engine import Engine
from pyverno.engine.phases import ADMISSION
from pyverno.engine.request import Request
from pyverno.engine.result import Status
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.offline.system import System
from tests.security.asking import CONFIG_MAP, compiled, found
from tests.support.apiserver import Script, serving

MAPS = GVR("", "v1", "configmaps")
SECRETS = GVR("", "v1", "secrets")

ODD_NAMES = [
    "../../other/secrets/token",
    "..",
    ".",
    "%2e%2e",
    "%2E%2E/%2e%2e/other",
    "a/b",
    "a/",
    "/",
    "a%2fb",
    "..\\other",
    "a\r\nHost: other",
    "a\nb",
    "a\0b",
]

Call = Callable[[Client, str], Awaitable[object]]

CALLS: dict[str, Call] = {
    "get": lambda client, name: client.get(MAPS, name, "team"),
    "get a subresource": lambda client, name: client.get(MAPS, "a", "team", subresource=name),
    "get in a namespace": lambda client, name: client.get(MAPS, "a", name),
    "list": lambda client, name: client.list(MAPS, name),
    "has_any": lambda client, name: client.has_any(MAPS, name),
    "create": lambda client, name: client.create(MAPS, {}, name),
    "store": lambda client, name: client.store(MAPS, {}, name),
    "submit": lambda client, name: client.submit(MAPS, {}, name),
    "discard": lambda client, name: client.discard(MAPS, name, "team"),
    "discard in a namespace": lambda client, name: client.discard(MAPS, "a", name),
    "update": lambda client, name: client.update(MAPS, {"metadata": {"name": name}}, "team"),
    "update in a namespace": lambda client, name: client.update(MAPS, {"metadata": {"name": "a"}}, name),
    "patch": lambda client, name: client.patch(MAPS, name, {}, "team"),
    "patch in a namespace": lambda client, name: client.patch(MAPS, "a", {}, name),
    "delete": lambda client, name: client.delete(MAPS, name, "team"),
    "delete in a namespace": lambda client, name: client.delete(MAPS, "a", name),
}


def play(scene: Callable[[Script, Client], Awaitable[None]]) -> None:
    """Run a scene with a server and its client."""

    async def run() -> None:
        async with serving() as (script, client):
            await scene(script, client)

    asyncio.run(run())


@pytest.mark.parametrize("verb", CALLS)
def test_no_verb_sends_a_name_that_is_more_than_one_segment(verb: str) -> None:
    """CVE-2026-100706, CVE-2026-100707: nothing is sent, neither to this path nor to another one."""

    async def scene(script: Script, client: Client) -> None:
        for name in ODD_NAMES:
            with pytest.raises(HostError, match="not one segment of an API path"):
                await CALLS[verb](client, name)
        assert [] == script.asked

    play(scene)


@pytest.mark.parametrize("verb", ["get", "discard", "update", "patch", "delete"])
def test_a_request_for_one_object_is_never_one_for_all(verb: str) -> None:
    """A name that became empty must not read, change or delete a whole collection."""

    async def scene(script: Script, client: Client) -> None:
        with pytest.raises(HostError, match="has no name"):
            await CALLS[verb](client, "")
        assert [] == script.asked

    play(scene)


@pytest.mark.parametrize("name", ["what?watch=1", "part#one", "with space", "größe", "system:node"])
def test_what_a_name_may_contain_arrives_as_the_name(name: str) -> None:
    """A role may be called `what?watch=1`: neither of both connections takes a part of the name for a query."""

    async def scene(script: Script, client: Client) -> None:
        path = f"/api/v1/namespaces/team/configmaps/{name}"
        script.on(f"GET {path}", {"kind": "ConfigMap"})
        script.on(f"DELETE {path}", {"kind": "ConfigMap"})
        await client.get(MAPS, name, "team")
        await client.discard(MAPS, name, "team")
        assert [("GET", path, {}), ("DELETE", path, {})] == [
            (each.method, each.path, each.query) for each in script.asked
        ]

    play(scene)


def review(text: str, resource: JSONObject) -> tuple[Status, str, list[str]]:
    """Return status and message of a rule of namespace `team` in a cluster, and the requests that it made."""

    async def run() -> tuple[Status, str, list[str]]:
        sent: list[str] = []
        async with Sandbox(Settings(controllers=False, namespaces=("team", "other"))) as sandbox:
            access = load_kubeconfig(sandbox.kubeconfig)
            async with Client(access, qps=0, on_request=lambda method, path: sent.append(f"{method} {path}")) as client:
                body: JSONObject = {"apiVersion": "v1", "metadata": {"name": "token"}}
                await client.create(SECRETS, {**body, "kind": "Secret", "data": {"a": "czNjcjN0"}}, "other")
                await client.create(MAPS, {**body, "kind": "ConfigMap", "data": {"a": "s3cr3t"}}, "other")
                sent.clear()
                host = ClusterHost(client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System())
                engine = Engine(compiled(text).policy_set(), host)
                result = await asyncio.to_thread(engine.review, Request.from_manifest(resource), ADMISSION)
        (only,) = result.results
        return only.status, only.message, sent

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["../../other/configmaps/token", "../../other/secrets/token"])
def test_the_name_of_a_config_map_leads_a_namespaced_policy_nowhere_else(name: str) -> None:
    """CVE-2026-41068: the name may be data of the request, and must not reach an object of another namespace."""
    entry = "configMap:\n  name: '{{ request.object.data.map }}'\n  namespace: team"
    text = found(entry, kind="Policy").replace("{{ found }}", "{{ found.data.a }}")
    status, message, sent = review(text, {**CONFIG_MAP, "data": {"map": name}})
    assert (Status.ERROR, []) == (status, sent)
    assert "s3cr3t" not in message
    assert "czNjcjN0" not in message
