"""The webhook over HTTPS: verdicts, refusals, limits, threads, health, certificates and an orderly shutdown."""

from __future__ import annotations

import asyncio
import base64
import gc
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import orjson
import pytest

from pyverno.connector import Connector
from pyverno.engine.host import NoHost
from pyverno.engine.request import Request
from pyverno.engine.timeslice import TimeSliceBudget
from pyverno.errors import HostError, HostUnavailableError
from pyverno.kube.admissionreview import AdmissionRequest, AdmissionResponse
from pyverno.kube.json import JSONObject
from pyverno.webhook.configuration import Configuration
from pyverno.webhook.nonblocking import NeedsWorkerError
from pyverno.webhook.policies import Policies
from pyverno.webhook.server import Limits, WebhookServer
from pyverno.webhook.tls import ServerTls
from tests.support.webhookserver import (
    MemoryWorld,
    Recorded,
    SettableHealth,
    make_certificate,
    make_server,
    review_body,
)

CERTIFICATE = make_certificate()
_OF_A_REVIEW = (AdmissionRequest, Request, TimeSliceBudget, NeedsWorkerError)
POD: JSONObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": {}}
MATCH = {"any": [{"resources": {"kinds": ["Pod"]}}]}


def policy(name: str, rule: JSONObject, **spec: Any) -> JSONObject:
    """Return a ClusterPolicy with one rule for Pods."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name},
        "spec": {"rules": [{"name": "rule", "match": MATCH, **rule}], **spec},
    }


TEAM = policy(
    "require-team",
    {
        "validate": {
            "failureAction": "Enforce",
            "message": "label team is missing",
            "pattern": {"metadata": {"labels": {"team": "?*"}}},
        }
    },
)
ADD = policy("add-team", {"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(team)": "bravo"}}}}})
FROM_CONFIG = policy(
    "from-config",
    {
        "context": [{"name": "settings", "configMap": {"name": "settings", "namespace": "default"}}],
        "validate": {
            "failureAction": "Enforce",
            "message": "names must be `{{ settings.data.name }}`",
            "deny": {
                "conditions": {
                    "all": [{"key": "{{ request.name }}", "operator": "NotEquals", "value": "{{ settings.data.name }}"}]
                }
            },
        },
    },
)


class Client:
    """Sends reviews to a server and reads the responses."""

    def __init__(self, server: WebhookServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"https://localhost:{self.server.port}{path}"

    async def ask(self, path: str, body: JSONObject) -> JSONObject:
        """Return the response of a review."""
        async with self.session.post(self.url(path), json=body) as reply:
            assert 200 == reply.status
            found: JSONObject = (await reply.json())["response"]
            return found

    async def status(self, method: str, path: str, **options: Any) -> tuple[int, bytes]:
        """Return status code and body of a request."""
        async with self.session.request(method, self.url(path), **options) as reply:
            return reply.status, await reply.read()


def serve(server: WebhookServer, test: Callable[[Client], Awaitable[None]]) -> None:
    """Run a test against a server."""

    async def run() -> None:
        await server.start("127.0.0.1", 0)
        connector = Connector(ssl=CERTIFICATE.client_context())
        try:
            async with aiohttp.ClientSession(connector=connector) as session:
                await test(Client(server, session))
        finally:
            await server.stop()

    asyncio.run(run())


def test_a_pod_without_its_label_is_denied_in_the_words_of_the_policy() -> None:
    """`pyverno apply` prints the same text, which comes from the engine."""

    async def test(client: Client) -> None:
        response = await client.ask("/validate/fail", review_body(POD))
        assert ("uid-1", False) == (response["uid"], response["allowed"])
        assert (
            "\n\nresource Pod/default/web was blocked due to the following policies \n\nrequire-team:\n"
            "  rule: 'validation error: label team is missing. rule rule failed at path /metadata/labels/'\n"
        ) == response["status"]["message"]
        assert (await client.ask("/validate/ignore", review_body(POD)))["allowed"]
        labelled = {**POD, "metadata": {**POD["metadata"], "labels": {"team": "a"}}}
        assert (await client.ask("/validate", review_body(labelled)))["allowed"]

    serve(make_server(CERTIFICATE, TEAM), test)


def test_a_mutation_comes_back_as_a_json_patch() -> None:
    """Validating paths return no patch."""

    async def test(client: Client) -> None:
        response = await client.ask("/mutate/fail", review_body(POD))
        patch = orjson.loads(base64.b64decode(response["patch"]))
        assert [{"op": "add", "path": "/metadata/labels", "value": {"team": "bravo"}}] == patch
        assert "patch" not in await client.ask("/validate/fail", review_body(POD))

    serve(make_server(CERTIFICATE, ADD), test)


def test_an_answer_that_cannot_be_written_keeps_its_verdict_and_loses_no_mutation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A denial stays one, and what passed passes; a change that cannot be written is a failed call."""

    def broken(self: AdmissionResponse, admission_request: AdmissionRequest) -> bytes:
        raise RuntimeError("canary")

    monkeypatch.setattr(AdmissionResponse, "to_bytes", broken)

    async def test(client: Client) -> None:
        labelled = {**POD, "metadata": {**POD["metadata"], "labels": {"team": "a"}}}
        denied = await client.ask("/validate/fail", review_body(POD))
        assert (False, "Failure") == (denied["allowed"], denied["status"]["status"])
        assert "canary" not in denied["status"]["message"]
        assert (await client.ask("/validate/fail", review_body(labelled)))["allowed"]
        assert (await client.ask("/mutate/fail", review_body(labelled)))["allowed"]
        status, body = await client.status("POST", "/mutate/fail", json=review_body(POD))
        assert (500, False) == (status, b"canary" in body)

    serve(make_server(CERTIFICATE, TEAM, ADD), test)


class Hung(NoHost):
    """A Host that never answers until it is released."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = 0

    async def begin(self) -> None:
        """Wait until a review reads the ConfigMap."""
        while not self.asked:
            await asyncio.sleep(0.005)

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Wait without end, whatever the deadline is."""
        self.asked += 1
        self.let_go.wait(300)
        return {"data": {"name": "web"}}


class Forgetful(Recorded):
    """Observes answers and keeps none."""

    def answered(self, *_: object) -> None:
        """Keep nothing."""


class Failing(NoHost):
    """A Host that cannot read the ConfigMap."""

    def config_map(self, namespace: str, name: str) -> JSONObject:
        """Raise an error."""
        raise HostError("no such luck")


def test_a_review_that_waits_for_the_host_does_not_delay_others() -> None:
    """It runs in a worker thread while the event loop answers other requests."""
    host = Hung()

    async def test(client: Client) -> None:
        slow = asyncio.ensure_future(client.ask("/validate/fail", review_body(POD)))
        await host.begin()
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "default"}}
        assert (await client.ask("/validate/fail", review_body(service)))["allowed"]
        assert not slow.done()
        host.let_go.set()
        assert (await slow)["allowed"]

    serve(make_server(CERTIFICATE, FROM_CONFIG, host=host), test)


def _parts_of_reviews() -> list[object]:
    """Return all requests, budgets and errors of reviews that exist."""
    return [each for each in gc.get_objects() if isinstance(each, _OF_A_REVIEW)]


def test_a_review_that_moves_to_a_worker_is_freed_with_its_answer() -> None:
    """No reference cycle holds its object, nor the frames of the attempt on the event loop.

    A collection that finds one while the worker runs would freeze it for minutes.
    """
    host = Hung()
    host.let_go.set()

    async def test(client: Client) -> None:
        await client.ask("/validate/fail", review_body(POD))
        gc.collect()
        before = _parts_of_reviews()  # the constants of other test modules
        known = {*map(id, before)}
        gc.disable()
        try:
            await client.ask("/validate/fail", review_body(POD))
            await client.status("POST", "/validate/fail", json={})  # the last request of the connection is kept
            for pause in (0.01, 0.1, 1, 10, 30):  # the thread lets go of its work a moment after the answer
                kept = [type(each).__name__ for each in _parts_of_reviews() if id(each) not in known]
                if not kept:
                    break
                await asyncio.sleep(pause)
        finally:
            gc.enable()
        assert [] == kept

    serve(make_server(CERTIFICATE, FROM_CONFIG, host=host, observer=Forgetful()), test)
    assert host.asked


def test_an_error_of_the_host_is_handled_by_failure_policy() -> None:
    """Fail denies and Ignore allows; an error never reads as "no match"."""
    lenient = policy("lenient", FROM_CONFIG["spec"]["rules"][0], failurePolicy="Ignore")

    async def test(client: Client) -> None:
        denied = await client.ask("/validate/fail", review_body(POD))
        assert not denied["allowed"]
        assert "no such luck" in denied["status"]["message"]
        assert (await client.ask("/validate/ignore", review_body(POD)))["allowed"]

    serve(make_server(CERTIFICATE, FROM_CONFIG, lenient, host=Failing()), test)


def test_a_review_ends_before_the_caller_stops_waiting() -> None:
    """The URL has the API server's timeout; a hanging thread is abandoned, and the response is a valid status."""

    host = Hung()

    async def test(client: Client) -> None:
        code, body = await client.status("POST", "/validate/fail?timeout=1s", json=review_body(POD))
        assert (504, "Timeout") == (code, orjson.loads(body)["reason"])
        host.let_go.set()

    serve(make_server(CERTIFICATE, FROM_CONFIG, host=host), test)


REFUSED: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/elsewhere", {"json": {}}, 404),
    ("POST", "/validate/fail/finegrained", {"json": {}}, 404),
    ("GET", "/validate", {}, 405),
    ("POST", "/validate", {"data": b"", "headers": {"Content-Type": "application/json"}}, 400),
    ("POST", "/validate", {"json": {}}, 400),
    ("POST", "/validate", {"data": b"{}", "headers": {"Content-Type": "text/yaml"}}, 415),
    ("POST", "/validate", {"data": b"{", "headers": {"Content-Type": "application/json"}}, 417),
    ("POST", "/validate", {"data": b"[" * 70_000, "headers": {"Content-Type": "application/json"}}, 417),
    ("POST", "/validate", {"data": b" " * 100_001, "headers": {"Content-Type": "application/json"}}, 413),
    ("GET", "/health/other", {}, 404),
]


def test_bad_requests_get_a_status_and_do_not_affect_others() -> None:
    """Each refusal is reported; a good request in between is answered as usual."""
    told = Recorded()

    async def chunks() -> Any:
        for _ in range(20):
            yield b" " * 10_000

    async def test(client: Client) -> None:
        for method, path, options, code in REFUSED:
            found, body = await client.status(method, path, **options)
            assert (code, "Status") == (found, orjson.loads(body)["kind"]), path
            assert not (await client.ask("/validate", review_body(POD)))["allowed"]
        chunked = await client.status("POST", "/validate", data=chunks(), headers={"Content-Type": "application/json"})
        assert 413 == chunked[0]

    serve(make_server(CERTIFICATE, TEAM, observer=told, limits=Limits(body_bytes=100_000)), test)
    assert len(told.failures) == len(REFUSED)  # every one except the path below /health and the chunked one
    assert len(told.answers) == len(REFUSED)


def test_what_is_in_work_is_bounded() -> None:
    """A request whose body exceeds the bound is refused with 503."""

    async def test(client: Client) -> None:
        code, body = await client.status("POST", "/validate", json=review_body(POD))
        assert (503, "ServiceUnavailable") == (code, orjson.loads(body)["reason"])

    serve(make_server(CERTIFICATE, TEAM, limits=Limits(bytes_in_work=10)), test)


def test_a_body_that_never_ends_is_given_up() -> None:
    """The request gets a response and its connection is closed."""

    async def drip() -> Any:
        yield b"{"
        await asyncio.Event().wait()

    async def test(client: Client) -> None:
        code, _ = await client.status("POST", "/validate", data=drip(), headers={"Content-Type": "application/json"})
        assert 408 == code

    serve(make_server(CERTIFICATE, TEAM, limits=Limits(body_seconds=0.2)), test)


def test_probes_follow_the_health_of_the_server() -> None:
    """Liveness never fails; readiness follows the health object."""
    health = SettableHealth()

    async def test(client: Client) -> None:
        assert (200, b"ok") == await client.status("GET", "/health/readiness")
        health.trouble = "the watch of policies is stale"
        assert (500, b"the watch of policies is stale") == await client.status("GET", "/health/readiness")
        assert (200, b"ok") == await client.status("GET", "/health/liveness")

    serve(make_server(CERTIFICATE, health=health), test)


def test_special_paths_are_answered_by_their_own_functions() -> None:
    """An error of such a function is a denial with the text of the error."""

    async def policies(admission_request: AdmissionRequest) -> AdmissionResponse:
        if admission_request.name == "bad":
            raise HostError("not today")
        return AdmissionResponse(warnings=[f"saw {admission_request.name}"])

    async def test(client: Client) -> None:
        assert ["saw web"] == (await client.ask("/policyvalidate", review_body(POD)))["warnings"]
        denied = await client.ask("/policyvalidate", review_body(POD, name="bad"))
        assert (False, "not today") == (denied["allowed"], denied["status"]["message"])

    serve(make_server(CERTIFICATE, special={"/policyvalidate": policies}), test)


def test_filtered_requests_and_excluded_users_are_not_evaluated() -> None:
    """No policy is evaluated, so the outcome has no review."""
    told = Recorded()
    cluster = MemoryWorld(
        configuration=Configuration.read({"resourceFilters": "[*/*,kube-system,*]", "excludeUsernames": "root"})
    )

    async def test(client: Client) -> None:
        assert (await client.ask("/validate", review_body(POD, namespace="kube-system")))["allowed"]
        assert (await client.ask("/validate", review_body(POD, userInfo={"username": "root"})))["allowed"]
        assert not (await client.ask("/validate", review_body(POD)))["allowed"]

    serve(make_server(CERTIFICATE, TEAM, cluster=cluster, observer=told), test)
    assert [True, True, False] == [outcome.review is None for _, outcome in told.answers]


def test_managed_resources_are_protected_from_other_users() -> None:
    """The label marks them; the namespace controller may still empty a namespace."""
    managed = {**POD, "metadata": {**POD["metadata"], "labels": {"app.kubernetes.io/managed-by": "kyverno"}}}
    namespace_controller = {"username": "system:serviceaccount:kube-system:namespace-controller"}

    async def test(client: Client) -> None:
        denied = await client.ask("/validate", review_body(managed))
        assert "A kyverno managed resource can only be modified by kyverno" == denied["status"]["message"]
        ours = {"username": "system:serviceaccount:kyverno:kyverno-background-controller"}
        assert (await client.ask("/validate", review_body(managed, userInfo=ours)))["allowed"]
        deletion = review_body(
            managed, userInfo=namespace_controller, operation="DELETE", object=None, oldObject=managed
        )
        assert (await client.ask("/validate", deletion))["allowed"]
        assert not (await client.ask("/validate", review_body(managed, userInfo=namespace_controller)))["allowed"]

    serve(make_server(CERTIFICATE, cluster=MemoryWorld(protects_managed=True)), test)


class Stored(NoHost):
    """A cluster in which one policy is stored, although no watch has delivered it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str, str]] = []

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return the policy `late`."""
        self.asked.append((api_version, kind, namespace, name))
        return {"metadata": {"name": name}} if name == "late" else None


NAMED = [
    ("/validate/fail/finegrained/late", 503, ("kyverno.io/v1", "ClusterPolicy", "", "late")),
    ("/validate/ignore/finegrained/team/late", 503, ("kyverno.io/v1", "Policy", "team", "late")),
    ("/vpol/late", 503, ("policies.kyverno.io/v1", "ValidatingPolicy", "", "late")),
    ("/mpol/late", 503, ("policies.kyverno.io/v1", "MutatingPolicy", "", "late")),
    ("/nvpol/late", 503, ("policies.kyverno.io/v1", "NamespacedValidatingPolicy", "default", "late")),
    ("/vpol/gone", 200, ("policies.kyverno.io/v1", "ValidatingPolicy", "", "gone")),
    ("/validate/fail/finegrained/team/gone", 200, ("kyverno.io/v1", "Policy", "team", "gone")),
]


@pytest.mark.parametrize(("path", "code", "asked"), NAMED)
def test_a_policy_on_the_path_that_has_not_arrived_is_no_policy_that_passes(
    path: str, code: int, asked: tuple[str, str, str, str]
) -> None:
    """The API server applies the failure policy to the error; only a deleted policy is skipped."""
    host, told = Stored(), Recorded()

    async def test(client: Client) -> None:
        found, body = await client.status("POST", path, json=review_body(POD))
        assert code == found
        if code != 200:
            assert "failed to fetch policy with key" in orjson.loads(body)["message"]

    serve(make_server(CERTIFICATE, TEAM, host=host, observer=told), test)
    assert [asked] == host.asked
    assert (1 if code == 200 else 0) == len(told.answers)


def test_the_call_fails_where_the_deletion_of_a_policy_cannot_be_verified() -> None:
    """Filtered requests need no lookup, and the number of lookups for one path is bounded."""
    names = "/".join(f"gone-{number}" for number in range(10))
    cluster = MemoryWorld(configuration=Configuration.read({"resourceFilters": "[*/*,kube-system,*]"}))

    async def test(client: Client) -> None:
        assert 503 == (await client.status("POST", "/vpol/gone", json=review_body(POD)))[0]
        assert (await client.ask("/vpol/gone", review_body(POD, namespace="kube-system")))["allowed"]

    serve(make_server(CERTIFICATE, cluster=cluster), test)
    host = Stored()

    async def test_many(client: Client) -> None:
        assert 503 == (await client.status("POST", f"/vpol/{names}", json=review_body(POD)))[0]

    serve(make_server(CERTIFICATE, host=host), test_many)
    assert 4 == len(host.asked)


def test_an_error_of_no_rule_is_a_failed_call() -> None:
    """The API server applies the webhook's failurePolicy to it, which is exact for Ignore and for Fail."""

    class Unknown(MemoryWorld):
        @property
        def policies(self) -> Policies:
            raise HostUnavailableError("validatingpolicies are not known yet")

        @policies.setter
        def policies(self, _: Policies) -> None: ...

    async def test(client: Client) -> None:
        for path in ("/validate/fail", "/validate/ignore", "/mutate/fail", "/vpol/a"):
            code, body = await client.status("POST", path, json=review_body(POD))
            assert (503, "validatingpolicies are not known yet") == (code, orjson.loads(body)["message"])
        scale = review_body(POD, subResource="scale")
        scale["request"]["resource"] = {"group": "x", "version": "v1", "resource": "y"}
        for path in ("/validate/fail", "/validate/ignore"):
            assert 500 == (await client.status("POST", path, json=scale))[0]

    serve(make_server(CERTIFICATE, cluster=Unknown()), test)


def test_a_certificate_changes_between_two_handshakes() -> None:
    """Open connections stay; new ones get the new certificate; an invalid pair changes nothing."""
    old, new = CERTIFICATE, make_certificate("new")
    tls = ServerTls(old.certificate, old.key)
    server = make_server(old, TEAM)
    server._tls = tls

    async def seen(port: int) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        return found

    async def test(client: Client) -> None:
        assert not (await client.ask("/validate", review_body(POD)))["allowed"]
        before = await seen(server.port)
        with pytest.raises(ssl.SSLError):
            tls.swap(new.certificate, old.key)
        assert before == await seen(server.port)
        tls.swap(new.certificate, new.key)
        assert ssl.PEM_cert_to_DER_cert(new.certificate.decode()) == await seen(server.port)
        assert not (await client.ask("/validate", review_body(POD)))["allowed"]

    serve(server, test)


def test_old_protocols_and_ciphers_are_refused() -> None:
    """TLS 1.1 is refused, and TLS 1.2 has AEAD ciphers only.

    Register: GHSA-hgv6.
    """

    async def handshake(port: int, ciphers: str) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        name: str = writer.get_extra_info("cipher")[0]
        writer.close()
        await writer.wait_closed()
        return name

    async def test(client: Client) -> None:
        port = client.server.port
        assert "ECDHE-ECDSA-AES128-GCM-SHA256" == await handshake(port, "ECDHE-ECDSA-AES128-GCM-SHA256")
        for weak in ("ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await handshake(port, weak)

    serve(make_server(CERTIFICATE), test)


def test_what_is_in_work_is_finished_before_the_end() -> None:
    """A review that has begun is answered although the server is stopping."""

    async def run() -> None:
        host = Hung()
        server = make_server(CERTIFICATE, FROM_CONFIG, host=host)
        await server.start("127.0.0.1", 0)
        async with aiohttp.ClientSession(connector=Connector(ssl=CERTIFICATE.client_context())) as session:
            client = Client(server, session)
            asking = asyncio.ensure_future(client.ask("/validate/fail", review_body(POD)))
            await host.begin()
            stopping = asyncio.ensure_future(server.stop())
            assert (500, b"shutting down") == await client.status("GET", "/health/readiness")
            host.let_go.set()
            assert (await asking)["allowed"]
            await stopping

    asyncio.run(run())


class LateNamespaces(NoHost):
    """A Host with one namespace that the watch has not delivered."""

    def get_object(
        self, api_version: str, kind: str, namespace: str, name: str, *, subresource: str = ""
    ) -> JSONObject | None:
        """Return the namespace `late`."""
        labels = {"env": "prod"}
        return {"metadata": {"name": name, "labels": labels}} if (kind, name) == ("Namespace", "late") else None


def test_a_namespace_that_the_watch_has_not_delivered_is_requested() -> None:
    """Without its labels no selector would match, so policies would not apply; a missing namespace is an error."""
    selected = policy("selected", TEAM["spec"]["rules"][0])
    resources = {"kinds": ["Pod"], "namespaceSelector": {"matchLabels": {"env": "prod"}}}
    selected["spec"]["rules"][0] = {**selected["spec"]["rules"][0], "match": {"any": [{"resources": resources}]}}
    cluster = MemoryWorld(namespaces={"default": {"metadata": {"name": "default"}}})

    async def test(client: Client) -> None:
        assert (await client.ask("/validate", review_body(POD)))["allowed"]
        late = await client.ask("/validate", review_body(POD, namespace="late"))
        assert "label team is missing" in late["status"]["message"]
        code, body = await client.status("POST", "/validate", json=review_body(POD, namespace="gone"))
        assert (500, 'namespaces "gone" not found') == (code, orjson.loads(body)["message"])

    serve(make_server(CERTIFICATE, selected, cluster=cluster, host=LateNamespaces()), test)


def test_stuck_threads_are_replaced_until_the_replica_is_not_ready() -> None:
    """Callers get a response at the deadline, the loop and small reviews go on, and returning threads are reused."""
    host = Hung()
    limits = Limits(workers=2, spare_workers=2)

    async def test(client: Client) -> None:
        for number in range(4):
            assert 200 == (await client.status("GET", "/health/readiness"))[0]
            code, _ = await client.status("POST", "/validate/fail?timeout=0.9s", json=review_body(POD))
            assert (504, number + 1) == (code, client.server.overdue)
        assert (500, b"all threads are busy with reviews past their deadline") == await client.status(
            "GET", "/health/readiness"
        )
        assert (200, b"ok") == await client.status("GET", "/health/liveness")
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "default"}}
        assert (await client.ask("/validate/fail", review_body(service)))["allowed"]
        assert 504 == (await client.status("POST", "/validate/fail?timeout=0.9s", json=review_body(POD)))[0]
        assert 4 == host.asked, "a review that waits for a thread beyond its deadline never starts"
        host.let_go.set()
        while client.server.overdue:
            await asyncio.sleep(0.01)
        assert (await client.ask("/validate/fail", review_body(POD)))["allowed"]
        assert 200 == (await client.status("GET", "/health/readiness"))[0]
        assert 2 >= client.server._workers._threads
        assert 0 == client.server._bodies.in_work

    serve(make_server(CERTIFICATE, FROM_CONFIG, host=host, limits=limits), test)


def test_bytes_of_a_review_past_its_deadline_still_count() -> None:
    """Memory is bounded by what threads hold, not by what callers wait for."""
    host = Hung()
    large = {**POD, "metadata": {**POD["metadata"], "annotations": {"a": "x" * 60_000}}}

    async def test(client: Client) -> None:
        assert 504 == (await client.status("POST", "/validate/fail?timeout=0.9s", json=review_body(large)))[0]
        code, body = await client.status("POST", "/validate/fail?timeout=0.9s", json=review_body(large))
        assert (503, "ServiceUnavailable") == (code, orjson.loads(body)["reason"])
        host.let_go.set()
        while client.server.overdue:
            await asyncio.sleep(0.01)
        assert (await client.ask("/validate/fail", review_body(large)))["allowed"]

    serve(make_server(CERTIFICATE, FROM_CONFIG, host=host, limits=Limits(bytes_in_work=100_000)), test)


def test_a_large_review_is_answered_as_a_small_one() -> None:
    """A worker thread handles it from reading to writing; verdict, patch, refusals and special paths are the same."""
    large = {**POD, "metadata": {**POD["metadata"], "annotations": {"a": "x" * 200_000}}}

    async def leave(admission_request: AdmissionRequest) -> AdmissionResponse:
        return AdmissionResponse(warnings=[f"saw {admission_request.name}"])

    async def test(client: Client) -> None:
        assert not (await client.ask("/validate/fail", review_body(large)))["allowed"]
        patch = orjson.loads(base64.b64decode((await client.ask("/mutate/fail", review_body(large)))["patch"]))
        assert [{"op": "add", "path": "/metadata/labels", "value": {"team": "bravo"}}] == patch
        assert ["saw web"] == (await client.ask("/policyvalidate", review_body(large)))["warnings"]
        headers = {"Content-Type": "application/json"}
        assert 417 == (await client.status("POST", "/validate", data=b"[" * 200_000, headers=headers))[0]

    serve(make_server(CERTIFICATE, TEAM, ADD, special={"/policyvalidate": leave}), test)
