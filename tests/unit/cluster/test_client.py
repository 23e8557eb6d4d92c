"""The client with servers that refuse, delay, redirect and break off."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import APPLY_PATCH, MERGE_PATCH, Client
from pyverno.errors import HostError
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.status import StatusError
from tests.support.apiserver import Script, serving, status, watch

MAPS = GVR("", "v1", "configmaps")
LEASES = GVR("coordination.k8s.io", "v1", "leases")
PATH = "/api/v1/namespaces/team/configmaps"

Scene = Callable[[Script, Client], Awaitable[None]]


def play(scene: Scene, **access: Any) -> None:
    """Run a scene with a server and its client."""

    async def run() -> None:
        async with serving(**access) as (script, client):
            await scene(script, client)

    asyncio.run(run())


def test_verbs_are_sent_as_kubernetes_has_them() -> None:
    """Each verb has its method, path, media type and query."""

    async def scene(script: Script, client: Client) -> None:
        body = {"metadata": {"name": "a"}}
        for what in (f"POST {PATH}", f"GET {PATH}/a", f"PUT {PATH}/a/status", f"PATCH {PATH}/a", f"DELETE {PATH}/a"):
            script.on(what, body)
        await client.create(MAPS, body, "team", query={"dryRun": "All"})
        await client.get(MAPS, "a", "team")
        await client.update(MAPS, body, "team", subresource="status")
        await client.patch(MAPS, "a", {}, "team")
        await client.patch(MAPS, "a", {}, "team", kind=APPLY_PATCH, query={"fieldManager": "me"})
        await client.delete(MAPS, "a", "team", options={"propagationPolicy": "Background"})
        assert [
            ("POST", PATH, {"dryRun": "All"}, "application/json"),
            ("GET", f"{PATH}/a", {}, ""),
            ("PUT", f"{PATH}/a/status", {}, "application/json"),
            ("PATCH", f"{PATH}/a", {}, MERGE_PATCH),
            ("PATCH", f"{PATH}/a", {"fieldManager": "me"}, APPLY_PATCH),
            ("DELETE", f"{PATH}/a", {}, "application/json"),
        ] == [(each.method, each.path, each.query, each.headers.get("Content-Type", "")) for each in script.asked]
        assert b"Background" in script.asked[-1].body

    play(scene)


def test_a_refusal_is_a_typed_error() -> None:
    """Code, reason and text are the server's; a body that is no Status is not repeated."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", status(403, "Forbidden"), web.Response(status=502, text="<html>hunter2</html>"))
        with pytest.raises(StatusError) as refused:
            await client.get(MAPS, "a", "team")
        assert (403, "Forbidden", "Forbidden") == (refused.value.status, refused.value.reason, refused.value.message)
        with pytest.raises(StatusError) as broken:
            await client.get(MAPS, "a", "team")
        assert 502 == broken.value.status
        assert "hunter2" not in str(broken.value)

    play(scene)


def test_a_request_is_repeated_after_retry_after() -> None:
    """The client waits as long as `Retry-After` says, a few times; errors without it are raised at once."""

    async def scene(script: Script, client: Client) -> None:
        later = status(429, "TooManyRequests", Retry_After="0")
        script.on(f"GET {PATH}/a", later, status(503, "ServiceUnavailable", Retry_After="0"), {"kind": "ConfigMap"})
        assert {"kind": "ConfigMap"} == await client.get(MAPS, "a", "team")
        script.on(f"GET {PATH}/b", later)
        with pytest.raises(StatusError, match="TooManyRequests"):
            await client.get(MAPS, "b", "team")
        assert 5 == script.count(f"GET {PATH}/b")
        script.on(f"GET {PATH}/c", status(503, "ServiceUnavailable"))
        with pytest.raises(StatusError, match="ServiceUnavailable"):
            await client.get(MAPS, "c", "team")
        assert 1 == script.count(f"GET {PATH}/c")

    play(scene)


def test_a_credential_that_is_refused_is_read_again(tmp_path: Path) -> None:
    """The credential is read once more; an unchanged token stays refused."""
    token = tmp_path / "token"
    token.write_text("old")

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", {"kind": "ConfigMap"})
        await client.get(MAPS, "a", "team")
        token.write_text("new")
        script.on(f"GET {PATH}/a", status(401, "Unauthorized"), {"kind": "ConfigMap"})
        await client.get(MAPS, "a", "team")
        assert ["Bearer old", "Bearer old", "Bearer new"] == [each.headers["Authorization"] for each in script.asked]
        script.on(f"GET {PATH}/a", status(401, "Unauthorized"))
        with pytest.raises(StatusError, match="Unauthorized"):
            await client.get(MAPS, "a", "team")
        assert 5 == len(script.asked)

    play(scene, token_file=token)


def test_a_closed_client_opens_no_connection_again() -> None:
    """A later call gets an error that background tasks handle, and no session leaks."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", {})
        await client.get(MAPS, "a", "team")
        await client.close()
        await client.close()
        with pytest.raises(HostError, match="the client of the API server is closed"):
            await client.get(MAPS, "a", "team")
        assert 1 == len(script.asked)

    play(scene)


def test_no_redirect_is_followed() -> None:
    """A redirect could send the credential to any host."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", web.Response(status=302, headers={"Location": "/elsewhere"}))
        with pytest.raises(StatusError) as refused:
            await client.get(MAPS, "a", "team")
        assert 302 == refused.value.status
        assert [f"{PATH}/a"] == [each.path for each in script.asked]

    play(scene)


def test_no_proxy_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a kubeconfig may name a proxy."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", {"kind": "ConfigMap"})
        assert {"kind": "ConfigMap"} == await client.get(MAPS, "a", "team")

    play(scene)

    async def through(_: Script, client: Client) -> None:
        with pytest.raises(HostError, match="cannot be reached"):
            await client.get(MAPS, "a", "team")

    play(through, proxy="http://127.0.0.1:9")


def test_impersonation_is_sent_with_every_request() -> None:
    """User, groups, uid and extra are sent, as kubectl does."""

    async def scene(script: Script, client: Client) -> None:
        seen: list[tuple[str, str]] = []

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            seen.extend((name, value) for name, value in request.headers.items() if name.startswith("Impersonate"))
            return web.json_response({"kind": "ConfigMap"})

        script.on(f"GET {PATH}/a", answer)
        await client.get(MAPS, "a", "team")
        assert [
            ("Impersonate-User", "bob"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "devs"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Extra-scopes", "view"),
        ] == seen

    play(
        scene,
        impersonate={"as": "bob", "as-uid": "7", "as-groups": ["devs", "ops"], "as-user-extra": {"scopes": ["view"]}},
    )


def test_a_list_is_read_page_by_page() -> None:
    """The pages form one list, with the metadata of the last page."""

    async def scene(script: Script, client: Client) -> None:
        first = {"kind": "ConfigMapList", "items": [{"n": 1}], "metadata": {"continue": "x y", "resourceVersion": "5"}}
        last = {"kind": "ConfigMapList", "items": [{"n": 2}], "metadata": {"resourceVersion": "5"}}
        script.on(f"GET {PATH}", first, last)
        found = await client.list(MAPS, "team", query={"labelSelector": "a=b"}, page=1)
        assert [{"n": 1}, {"n": 2}] == found["items"]
        assert [
            {"labelSelector": "a=b", "limit": "1"},
            {"labelSelector": "a=b", "limit": "1", "continue": "x y"},
        ] == [each.query for each in script.asked]

    play(scene)


def test_a_list_whose_pages_expire_is_read_at_once() -> None:
    """The list starts again without pages; a list that expires at its first request is an error."""

    async def scene(script: Script, client: Client) -> None:
        first = {"items": [{"n": 1}], "metadata": {"continue": "x", "resourceVersion": "5"}}
        whole = {"items": [{"n": 2}, {"n": 3}], "metadata": {"resourceVersion": "9"}}
        script.on(f"GET {PATH}", first, status(410, "Expired"), whole, status(410, "Expired"))
        assert {"items": [{"n": 2}, {"n": 3}], "metadata": {"resourceVersion": "9"}} == await client.list(MAPS, "team")
        assert [{"limit": "500"}, {"limit": "500", "continue": "x"}, {}] == [each.query for each in script.asked]
        with pytest.raises(StatusError):
            await client.list(MAPS, "team")

    play(scene)


def test_one_object_answers_whether_there_are_any() -> None:
    """Pages after the first object are not read; an empty page with a continue token leads to the next page."""

    async def scene(script: Script, client: Client) -> None:
        empty = {"items": [], "metadata": {"continue": "x"}}
        first = {"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "y", "remainingItemCount": 9}}
        script.on(f"GET {PATH}", empty, first, {"items": [], "metadata": {}})
        assert await client.has_any(MAPS, "team", selector="a=b")
        assert not await client.has_any(MAPS, "team")
        assert [
            {"limit": "1", "labelSelector": "a=b"},
            {"limit": "1", "labelSelector": "a=b", "continue": "x"},
            {"limit": "1"},
        ] == [each.query for each in script.asked]

    play(scene)


def test_a_silent_server_is_given_up() -> None:
    """The limit is the deadline of the caller; a port without a server fails as well."""

    async def scene(script: Script, client: Client) -> None:
        async def sleep(_: web.BaseRequest) -> web.StreamResponse:
            await asyncio.Event().wait()
            return web.Response()

        script.on(f"GET {PATH}", sleep)
        with pytest.raises(HostError, match=r"did not answer `GET .*` within 0\.2 seconds"):
            await client.request("GET", PATH, seconds=0.2)
        async with Client(Access("http://127.0.0.1:9")) as nobody:
            with pytest.raises(HostError, match="cannot be reached"):
                await nobody.request("GET", PATH)

    play(scene)


def test_an_answer_that_is_no_json_is_an_error() -> None:
    """This holds with status 200 as well, and for JSON that is no object."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"GET {PATH}/a", web.Response(text="hunter2"), web.Response(text="[]"))
        for said in ("something that is no JSON", "something that is no object"):
            with pytest.raises(HostError, match=said) as caught:
                await client.get(MAPS, "a", "team")
            assert "hunter2" not in str(caught.value)

    play(scene)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_a_small_answer_does_not_become_a_large_one(coding: str) -> None:
    """Compressed responses are inflated piece by piece, and the limit applies before the whole is in memory."""
    inflated = b'"' + b" " * 20_000_000 + b'"'
    body = gzip.compress(inflated) if coding == "gzip" else inflated

    async def scene(script: Script, client: Client) -> None:
        script.on("GET /version", web.Response(body=body, headers={"Content-Encoding": coding}))
        tracemalloc.start()
        try:
            with pytest.raises(HostError, match="answered `GET /version` with more than 1000000 bytes"):
                await client.request("GET", "/version", max_bytes=1_000_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert coding != "gzip" or peak < 15_000_000

    play(scene)


def test_a_stream_gives_whole_lines_only() -> None:
    """A line may arrive in parts; a truncated last line is dropped, and invalid JSON is an error."""

    async def scene(script: Script, client: Client) -> None:
        opened: list[bool] = []
        script.on(f"WATCH {PATH}", watch(b'{"n": 1}\n{"n"', b': 2}\n{"n": 3', ends=True), watch(b"oops\n"))
        stream = client.stream(PATH, query={"watch": "1"}, opened=lambda: opened.append(True))
        assert [{"n": 1}, {"n": 2}] == [line async for line in stream]
        assert [True] == opened
        with pytest.raises(HostError, match="something that is no JSON"):
            [line async for line in client.stream(PATH, query={"watch": "1"})]

    play(scene)


def test_a_stream_that_falls_silent_is_given_up() -> None:
    """Otherwise a half-open connection would block without end."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"WATCH {PATH}", watch({"n": 1}))
        stream = client.stream(PATH, query={"watch": "1"}, idle_seconds=0.2)
        assert {"n": 1} == await anext(stream)
        with pytest.raises(HostError, match="broke off"):
            await anext(stream)

    play(scene)


def test_certificates_that_can_not_be_used_are_one_error() -> None:
    """The error names the server and does not contain the key."""

    async def ask() -> None:
        async with Client(Access("https://127.0.0.1:9", ca=b"nonsense", key=b"hunter2")) as client:
            await client.request("GET", "/")

    with pytest.raises(HostError, match=r"certificates for `https://127\.0\.0\.1:9` cannot be used") as caught:
        asyncio.run(ask())
    assert "hunter2" not in str(caught.value)


def test_paths_are_those_of_the_api() -> None:
    """The core group has its own root path."""
    assert "/apis/coordination.k8s.io/v1/namespaces/a/leases/b" == resource_path(LEASES, "a", "b")
    assert "/api/v1/configmaps" == resource_path(MAPS)


def test_what_is_submitted_is_sent_and_judged_as_what_is_created() -> None:
    """Path, identity and body equal those of `create`; refusals are typed, and a busy server gets a retry."""

    async def scene(script: Script, client: Client) -> None:
        busy = web.Response(status=429, headers={"Retry-After": "0"})
        script.on(f"POST {PATH}", {"metadata": {"name": "a"}}, busy, {}, status(403, "Forbidden"))
        await client.submit(MAPS, {"metadata": {"name": "a"}}, "team")
        await client.submit(MAPS, {"metadata": {"name": "b"}}, "team")
        with pytest.raises(StatusError) as refused:
            await client.submit(MAPS, {"metadata": {"name": "c"}}, "team")
        assert (403, "Forbidden") == (refused.value.status, refused.value.reason)
        sent = [(each.method, each.path, each.headers["Authorization"], each.body) for each in script.asked]
        names = ("a", "b", "b", "c")
        assert sent == [
            ("POST", PATH, "Bearer sesame", b'{"metadata":{"name":"%b"}}' % name.encode()) for name in names
        ]
        await client.close()
        with pytest.raises(HostError, match="closed"):
            await client.submit(MAPS, {}, "team")

    play(scene, token="sesame")  # noqa: S106 - of a server of this test


def test_a_stored_object_comes_back_as_the_server_has_it() -> None:
    """Path and body equal those of `create`, and so does the answer; refusals are typed."""

    async def scene(script: Script, client: Client) -> None:
        made = {"metadata": {"name": "a", "uid": "1"}, "data": {"filled": "in"}}
        script.on(f"POST {PATH}", made, status(409, "AlreadyExists"))
        assert made == await client.store(MAPS, {"metadata": {"name": "a"}}, "team")
        with pytest.raises(StatusError) as refused:
            await client.store(MAPS, {"metadata": {"name": "a"}}, "team")
        assert (409, "AlreadyExists") == (refused.value.status, refused.value.reason)
        sent = script.asked[0]
        assert ("application/json", b'{"metadata":{"name":"a"}}') == (sent.headers["Accept"], sent.body)

    play(scene)


def test_what_is_discarded_is_deleted_with_its_options() -> None:
    """The body has the options of the deletion; a missing object is an error with the server's status."""

    async def scene(script: Script, client: Client) -> None:
        script.on(f"DELETE {PATH}/a", {"kind": "Status"}, status(404, "NotFound"))
        await client.discard(MAPS, "a", "team", options={"preconditions": {"uid": "1"}})
        with pytest.raises(StatusError) as missing:
            await client.discard(MAPS, "a", "team")
        assert 404 == missing.value.status
        options = b'{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"1"}}'
        assert options == script.asked[0].body

    play(scene)
