"""The webhook as an attacker meets it: its input, its requests to the API server, and the data that it reveals."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from pyverno.cluster.access import Access
from pyverno.cluster.client import Client
from pyverno.cluster.host import ClusterHost
from pyverno.connector import Connector
from pyverno.engine.host import HttpCall
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import BUILTIN_KINDS
from pyverno.offline.system import System
from pyverno.policy.kinds import WATCHED_POLICIES as POLICY_KINDS
from pyverno.webhook.routes import CEL_ROUTES, WebhookType, read_route
from pyverno.webhook.server import Limits, WebhookServer
from tests.security.asking import compiled, found, policy
from tests.support.apiserver import Script, serving, status
from tests.support.webhookserver import Certificate, Recorded, make_certificate, make_server, review_body

CONFIG_MAP: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}}
SECRET = "hunter2"  # noqa: S105 - a word to look for
NEEDS_LABEL = policy(
    "validate:\n  failureAction: Enforce\n  message: the label team is required\n"
    "  pattern:\n    metadata:\n      labels:\n        team: '?*'"
)
ADDS_LABEL = policy("mutate:\n  patchStrategicMerge:\n    metadata:\n      labels:\n        +(tier): bronze")

Scene = Callable[["Caller", WebhookServer], Awaitable[None]]


class Caller:
    """Sends bytes to a webhook server, good ones and bad ones."""

    def __init__(self, server: WebhookServer, context: ssl.SSLContext) -> None:
        self.port = server.port
        self.context = context

    async def post(self, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
        """Return code and body of a request; redirects are not followed."""
        sent = {"Content-Type": "application/json", **headers}
        url = f"https://localhost:{self.port}{path}"
        async with (
            aiohttp.ClientSession(connector=Connector(), trust_env=False) as session,
            session.post(url, data=body, headers=sent, ssl=self.context, allow_redirects=False) as reply,
        ):
            return reply.status, await reply.read()

    async def ask(self, path: str, resource: JSONObject, **request: Any) -> JSONObject:
        """Return the response of a review."""
        code, body = await self.post(path, json.dumps(review_body(resource, **request)).encode())
        assert 200 == code, body
        response: JSONObject = json.loads(body)["response"]
        return response

    async def health(self) -> int:
        """Return the status code of a health check."""
        url = f"https://localhost:{self.port}/health/liveness"
        async with (
            aiohttp.ClientSession(connector=Connector(), trust_env=False) as session,
            session.get(url, ssl=self.context) as reply,
        ):
            return reply.status

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and send nothing."""
        return await asyncio.open_connection("localhost", self.port, ssl=self.context)


def play(text: str, scene: Scene, certificate: Certificate | None = None, **settings: Any) -> None:
    """Play a scene with a server that judges by these policies."""
    certificate = certificate or make_certificate()

    async def run() -> None:
        written = [item.document.value for item in compiled(text).items]
        server = make_server(certificate, *written, **settings)
        await server.start("127.0.0.1", 0)
        try:
            await scene(Caller(server, certificate.client_context()), server)
        finally:
            await server.stop()

    asyncio.run(run())


BAD_BODIES = {
    "nothing": b"",
    "no-json": b"{",
    "no-object": b"[]",
    "no-request": b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
    "null-request": b'{"kind": "AdmissionReview", "request": null}',
    "list-request": b'{"kind": "AdmissionReview", "request": []}',
    "no-uid": b'{"kind": "AdmissionReview", "request": {"operation": "CREATE"}}',
    "odd-operation": b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "READ"}}',
    "text-for-object": b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "object": "x"}}',
    "odd-user": b'{"kind": "AdmissionReview", "request": {"uid": "1", "operation": "CREATE", "userInfo": []}}',
    "not-utf-8": b'{"kind": "\xff\xfe"',
    "nan": b'{"kind": "AdmissionReview", "request": NaN}',
    "deep": b'{"a":' * 20_000,
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
@pytest.mark.parametrize("path", ["/validate/fail", "/mutate/fail", "/policyvalidate"])
def test_an_invalid_review_is_refused_and_disturbs_no_other(body: bytes, path: str) -> None:
    """`fcd8adf0`, I11: 4xx with a Status, never 5xx and never 3xx (CVE-2020-8561); the next request is judged.

    Register: CVE-2022-31074, CVE-2025-59531, CVE-2025-59537, CVE-2025-59538.
    """

    async def scene(caller: Caller, _: WebhookServer) -> None:
        code, answer = await caller.post(path, body)
        assert 400 <= code < 500 or (path == "/policyvalidate" and code == 404), (code, answer)
        assert "Status" == json.loads(answer)["kind"]
        assert "the label team is required" in (await caller.ask("/validate/fail", CONFIG_MAP))["status"]["message"]
        labelled = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "labels": {"team": "a"}}}
        assert (await caller.ask("/validate/fail", labelled))["allowed"]

    play(NEEDS_LABEL, scene)


def test_no_field_that_a_user_sets_skips_evaluation() -> None:
    """I5, CVE-2023-34091: a deletion that has begun, finalizers, owners, our own labels: the verdict is the same."""
    fields: tuple[JSONObject, ...] = (
        {},
        {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a"]},
        {"deletionGracePeriodSeconds": 0},
        {"labels": {"app.kubernetes.io/managed-by": "kyverno"}},
        {"annotations": {"policies.kyverno.io/scored": "false"}},
        {"ownerReferences": [{"kind": "Policy", "name": "a", "uid": "1", "apiVersion": "kyverno.io/v1"}]},
        {"generateName": "a-", "name": ""},
    )

    good = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "labels": {"team": "a"}}}

    async def scene(caller: Caller, _: WebhookServer) -> None:
        assert (await caller.ask("/validate/fail", good))["allowed"]
        for extra in fields:
            for operation in ("CREATE", "UPDATE"):
                body = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], **extra}}
                response = await caller.ask("/validate/fail", body, operation=operation, oldObject=good)
                assert not response["allowed"], (extra, operation)

    play(NEEDS_LABEL, scene)


def test_a_body_beyond_the_limit_is_never_held() -> None:
    """R3, I9: 413 by its length, and as soon as the limit is passed when it has none; one below is judged.

    Register: CVE-2026-44247.
    """

    async def scene(caller: Caller, _: WebhookServer) -> None:
        large = {**CONFIG_MAP, "data": {"x": "y" * 20_000}}
        assert 413 == (await caller.post("/validate/fail", json.dumps(review_body(large)).encode()))[0]
        reader, writer = await caller.open()
        writer.write(b"POST /validate/fail HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n" + b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        assert b" 413 " in await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        assert not (await caller.ask("/validate/fail", CONFIG_MAP))["allowed"]

    play(NEEDS_LABEL, scene, limits=Limits(body_bytes=10_000))


@pytest.mark.parametrize("sent", [b"", b"POST /validate/fail HT", b"POST /validate/fail HTTP/1.1\r\nHost: a\r\nX-A: "])
def test_a_connection_without_a_question_is_closed(sent: bytes) -> None:
    """I9: a slow request head holds a connection for a limited time; a connection that sends requests stays open."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        reader, writer = await caller.open()
        writer.write(sent)
        async with asyncio.timeout(60):
            assert not await _rest(reader)
        reader, writer = await caller.open()
        body = json.dumps(review_body(CONFIG_MAP)).encode()
        head = "POST /validate/fail HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n"
        for _turn in range(2):
            writer.write(head.encode() + b"\r\n" + body)
            assert b" 200 " in await reader.readline()
            while (await reader.readline()).strip():
                pass
            await reader.read(65536)
            silent, other = await caller.open()  # closed once a head may take no longer: so much time has passed
            async with asyncio.timeout(60):
                assert not await _rest(silent)
            other.close()
        writer.close()

    play(NEEDS_LABEL, scene, limits=Limits(head_seconds=0.3))


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def _asked(caller: Caller) -> JSONObject:
    """Retry until the server accepts a connection; the timeout around the call ends it."""
    while True:
        try:
            return await caller.ask("/validate/fail", CONFIG_MAP)
        except (ConnectionError, aiohttp.ClientError):
            await asyncio.sleep(0.02)


def test_connections_beyond_the_limit_are_closed_and_the_others_served() -> None:
    """I9: a flood of connections is cut off without harm to open connections."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        held = [await caller.open() for _turn in range(3)]
        async with asyncio.timeout(60):
            reader, writer = await caller.open()
            assert not await _rest(reader)
        writer.close()
        for _reader, each in held:
            each.close()
        async with asyncio.timeout(60):
            assert not (await _asked(caller))["allowed"]

    # none is closed because it sends nothing
    play(NEEDS_LABEL, scene, limits=Limits(connections=3, head_seconds=600))


def test_idle_connections_make_room_for_new_ones() -> None:
    """L6: the longest idle connection is closed, so that idle clients cannot lock the API server out."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        held = []
        for _turn in range(3):
            reader, writer = await caller.open()
            writer.write(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200 OK" in await reader.readline()
            held.append((reader, writer))
        async with asyncio.timeout(60):
            assert not (await caller.ask("/validate/fail", CONFIG_MAP))["allowed"]
            assert (await _rest(held[0][0])).endswith(b"ok")
        for _reader, writer in held[1:]:
            writer.write(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(60):
            answers = [await reader.readuntil(b"HTTP/1.1 200 OK") for reader, _writer in held[1:]]
        assert 2 == len(answers)
        for _reader, writer in held:
            writer.close()

    play(NEEDS_LABEL, scene, limits=Limits(connections=3, reclaim_seconds=0))


def test_a_connection_whose_request_is_in_work_is_not_idle() -> None:
    """L6: with a request in work, or a response just sent, a connection stays open; a new one is refused instead."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        reader, writer = await caller.open()
        writer.write(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in await reader.readline()
        _other, second = await caller.open()
        second.write(b"POST /validate/fail HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n")
        await second.drain()
        async with asyncio.timeout(60):
            third, late = await caller.open()
            assert not await _rest(third)
        for each in (writer, second, late):
            each.close()

    play(NEEDS_LABEL, scene, limits=Limits(connections=2, reclaim_seconds=600, head_seconds=600))


def test_who_begins_with_tls_and_does_not_go_on_is_sent_away() -> None:
    """L6: connections that never end their handshake do not add up; the others are answered."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        silent = [await asyncio.open_connection("localhost", caller.port) for _turn in range(20)]
        silent[0][1].write(b"\x16\x03\x01")
        async with asyncio.timeout(60):
            for reader, writer in silent:
                assert not await _rest(reader)
                writer.close()
        assert not (await caller.ask("/validate/fail", CONFIG_MAP))["allowed"]

    play(NEEDS_LABEL, scene, limits=Limits(handshake_seconds=1))


def test_only_the_api_server_is_answered_with_the_flag() -> None:
    """1F, CVE-2025-1974: with no certificate, or one of another authority or name, only health checks are answered.

    The kubelet checks health and has no certificate.
    """
    certificate = make_certificate()

    async def run() -> None:
        from pyverno.webhook.tls import Clients, ServerTls

        server = make_server(certificate, *[item.document.value for item in compiled(NEEDS_LABEL).items])
        clients = Clients(certificate.certificate, ("localhost",))
        server._tls = ServerTls(certificate.certificate, certificate.key, clients=clients)
        await server.start("127.0.0.1", 0)
        try:
            stranger = Caller(server, certificate.client_context())
            body = json.dumps(review_body(CONFIG_MAP)).encode()
            assert 401 == (await stranger.post("/validate/fail", body))[0]
            assert 200 == await stranger.health()
            other = certificate.client_context()
            _load(other, make_certificate())
            with pytest.raises((aiohttp.ClientError, OSError)):
                await Caller(server, other).health()
            known = certificate.client_context()
            _load(known, certificate)
            assert not (await Caller(server, known).ask("/validate/fail", CONFIG_MAP))["allowed"]
            server._tls = ServerTls(
                certificate.certificate, certificate.key, clients=Clients(certificate.certificate, ("other",))
            )
            assert 401 == (await Caller(server, known).post("/validate/fail", body))[0]
        finally:
            await server.stop()

    asyncio.run(run())


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate.key + certificate.certificate)
        file.flush()
        context.load_cert_chain(file.name)


def test_a_mutation_of_a_mutation_is_nothing() -> None:
    """I12: f(f(x)) = f(x), so that a reinvocation changes nothing; a dry run gets the same answer."""

    async def scene(caller: Caller, _: WebhookServer) -> None:
        first = await caller.ask("/mutate/fail", CONFIG_MAP)
        assert first["patch"] == (await caller.ask("/mutate/fail", CONFIG_MAP, dryRun=True))["patch"]
        changed = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "labels": {"tier": "bronze"}}}
        assert "patch" not in await caller.ask("/mutate/fail", changed)

    play(ADDS_LABEL, scene)


def test_every_kind_of_policy_that_is_watched_has_its_path() -> None:
    """I15, `57f69eb7`: the webhook of a kind without a path would call one that answers 404."""
    served = {kind for route in CEL_ROUTES.values() for kind in route.kinds}
    for door in WebhookType:
        legacy = read_route(f"/{door}/fail")
        assert legacy is not None
        served |= legacy.kinds
    assert {gvr.resource for gvr in POLICY_KINDS} == {f"{kind.lower()[:-1]}ies" for kind in served}
    for route in CEL_ROUTES.values():
        named = route.with_names(("a",))
        assert named == read_route(named.path)


# -------------------------------------------------------------------------------------------- calls of the API server


def _with_cluster(text: str, scene: Callable[[Caller, Script], Awaitable[None]], observer: Recorded) -> None:
    certificate = make_certificate()

    async def run() -> None:
        async with serving(token=SECRET) as (script, client):
            host = ClusterHost(client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System())
            written = [item.document.value for item in compiled(text).items]
            server = make_server(certificate, *written, host=host, observer=observer)
            await server.start("127.0.0.1", 0)
            try:
                await scene(Caller(server, certificate.client_context()), script)
            finally:
                await server.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/{{ request.object.metadata.annotations.where }}/configmaps",
        "/api/v1/namespaces/team/../{{ request.object.metadata.annotations.where }}/configmaps",
        "/api/v1/nodes",
    ],
)
def test_a_namespaced_policy_can_not_make_the_webhook_read_elsewhere(path: str) -> None:
    """I1, CVE-2026-22039: no request reaches the API server; within the policy's namespace one does, for that path."""
    observer = Recorded()
    text = found(f"apiCall:\n  urlPath: '{path}'\n  jmesPath: kind", kind="Policy")

    async def scene(caller: Caller, script: Script) -> None:
        script.on("GET /api/v1/namespaces/team/configmaps", {"kind": "ConfigMapList"})
        for where in ("kube-system", "%2e%2e/kube-system", "team/../../kube-system"):
            metadata = {**CONFIG_MAP["metadata"], "annotations": {"where": where}}
            assert not (await caller.ask("/validate/fail", {**CONFIG_MAP, "metadata": metadata}))["allowed"]
        assert [] == script.asked

    _with_cluster(text, scene, observer)

    async def twin(caller: Caller, script: Script) -> None:
        script.on("GET /api/v1/namespaces/team/configmaps", {"kind": "ConfigMapList"})
        metadata = {**CONFIG_MAP["metadata"], "annotations": {"where": "team"}}
        response = await caller.ask("/validate/fail", {**CONFIG_MAP, "metadata": metadata})
        assert "ConfigMapList" in response["status"]["message"]
        assert ["/api/v1/namespaces/team/configmaps"] == [each.path for each in script.asked]

    if "where" in path and ".." not in path:
        _with_cluster(text, twin, observer)


def test_the_answer_of_a_broken_api_server_is_not_shown() -> None:
    """I4, GHSA-fmqp: neither the text of its answer nor our credential reaches the denial; the request is denied."""
    text = found("apiCall:\n  urlPath: /api/v1/namespaces/team/configmaps\n  jmesPath: kind")
    observer = Recorded()

    async def scene(caller: Caller, script: Script) -> None:
        for answer in (
            web.Response(status=502, text=f"<html>{SECRET}</html>"),
            web.Response(text=SECRET),
            status(500, "InternalError"),
        ):
            script.on("GET /api/v1/namespaces/team/configmaps", answer)
            response = await caller.ask("/validate/fail", CONFIG_MAP)
            assert not response["allowed"]
            assert SECRET not in json.dumps(response)
        assert [f"Bearer {SECRET}"] * 3 == [each.headers["Authorization"] for each in script.asked]

    _with_cluster(text, scene, observer)


def test_our_credential_goes_to_the_api_server_only() -> None:
    """I3, I4, CVE-2026-40868: calls of other services are not made at all, so no token can go with them."""

    async def run() -> None:
        async with Client(Access("http://127.0.0.1:9", token=SECRET)) as client:
            host = ClusterHost(client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System())
            call = HttpCall("http://169.254.169.254/", "GET")
            for ask in (host.http_call, host.http_exchange):
                with pytest.raises(HostUnavailableError, match="not available"):
                    ask(call)

    asyncio.run(run())


def test_a_world_that_is_away_denies_by_failure_policy() -> None:
    """I5, CVE-2025-46342: an API server that cannot be reached is an error; with Ignore the request goes through."""
    for failure_policy, is_allowed in (("Fail", False), ("Ignore", True)):
        text = found("configMap:\n  name: a\n  namespace: team").replace("{{ found }}", "{{ found.data.a }}")
        text = text.replace("spec:\n", f"spec:\n  failurePolicy: {failure_policy}\n")
        observer = Recorded()

        async def scene(
            caller: Caller, script: Script, name: str = failure_policy, expected: bool = is_allowed
        ) -> None:
            script.on("GET /api/v1/namespaces/team/configmaps/a", status(503, "ServiceUnavailable"))
            response = await caller.ask(f"/validate/{name.lower()}", CONFIG_MAP)
            assert expected == response["allowed"]

        _with_cluster(text, scene, observer)


def test_errors_of_the_host_are_typed() -> None:
    """I5: every failure of a call to the API server is a HostError, which the engine handles."""

    async def ask() -> None:
        async with Client(Access("http://127.0.0.1:9")) as client:
            host = ClusterHost(client, asyncio.get_running_loop(), lambda: BUILTIN_KINDS, System(), seconds=60)
            with pytest.raises(HostError):
                await asyncio.to_thread(host.config_map, "team", "a")

    asyncio.run(ask())
