"""The chain of admission as a client meets it: codes and texts over HTTPS, from webhooks over HTTPS.

The expected answers are those of a real API server of 1.35.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from pyverno.kube.json import JSONObject
from pyverno.loopthread import LoopThread
from tests.e2e.sandbox.client import Answer, Client
from tests.support.admissionstage import Reply, Served, answer, patching, serving
from tests.support.loops import entered

GROUP = "/apis/admissionregistration.k8s.io/v1"
DATA = {"op": "add", "path": "/data", "value": {"by": "webhook"}}


async def slow(review: JSONObject) -> web.StreamResponse:
    """Answer too late for a webhook that has one second."""
    await asyncio.sleep(3)
    return web.json_response(answer(review))


def deny(**response: object) -> Reply:
    """Return a webhook that denies."""
    return lambda review: answer(review, allowed=False, **response)


REPLIES: dict[str, Reply] = {
    "allow": answer,
    "deny": deny(),
    "forbid": deny(status={"message": "not here", "code": 403, "reason": "Forbidden"}),
    "teapot": deny(status={"message": "short and stout", "code": 418}),
    "patch": patching(DATA),
    "label": patching({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}),
    "slow": slow,
    "other": lambda review: answer({**review, "request": {"uid": "other"}}),
    "warn": lambda review: answer(review, warnings=["careful"], auditAnnotations={"key": "value"}),
}


@pytest.fixture(scope="module")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve all webhooks in a thread of their own."""
    folder: Path = tmp_path_factory.mktemp("webhooks")
    context = serving(folder, **REPLIES)  # type: ignore[arg-type]  # all are replies
    with LoopThread("webhooks") as thread, entered(thread, context) as served:
        yield served


Configure = Callable[..., None]


@pytest.fixture
def configure(client: Client, namespace: str, webhooks: Served) -> Iterator[Configure]:
    """Return what adds a configuration about ConfigMaps of this test's namespace, which goes away with it."""
    name = namespace.rpartition("/")[2]
    made: list[str] = []

    def add(kind: str, *paths: str, **fields: Any) -> None:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        hooks = [
            {
                "name": f"{path}{index}.example.com",
                "clientConfig": webhooks.client(path),
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                **fields,
            }
            for index, path in enumerate(paths)
        ]
        place = f"{GROUP}/{kind.lower()}webhookconfigurations"
        body = {"metadata": {"name": f"{name}-{len(made)}"}, "webhooks": hooks}
        created = client.post(place, body)
        assert 201 == created.status, created.data
        made.append(f"{place}/{name}-{len(made)}")

    webhooks.asked.clear()
    yield add
    for path in made:
        client.delete(path)


def create(client: Client, namespace: str, name: str = "c", query: str = "", **fields: object) -> Answer:
    """Create a ConfigMap."""
    return client.post(f"{namespace}/configmaps{query}", {"metadata": {"name": name}, **fields})


def status_of(found: Answer) -> tuple[int, str, str]:
    """Return code, reason and text of a refusal, whose code is that of the answer."""
    body = found.body
    assert ("Status", "Failure", found.status) == (body["kind"], body["status"], body["code"])
    return found.status, body.get("reason", ""), body["message"]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
@pytest.mark.parametrize(
    ("path", "code", "reason", "text"),
    [
        ("deny", 400, "", "without explanation"),
        ("forbid", 403, "Forbidden", ": not here"),
        ("teapot", 418, "", ": short and stout"),
    ],
)
def test_a_denial_carries_code_and_reason_of_the_webhook(
    client: Client, namespace: str, configure: Configure, kind: str, path: str, code: int, reason: str, text: str
) -> None:
    """The webhook's code and reason, and its text behind its name."""
    configure(kind, path)
    space = "" if text.startswith(":") else " "
    expected = f'admission webhook "{path}0.example.com" denied the request{space}{text}'
    assert (code, reason, expected) == status_of(create(client, namespace))
    assert 404 == client.get(f"{namespace}/configmaps/c").status


def test_allowed_requests_pass(client: Client, namespace: str, configure: Configure, webhooks: Served) -> None:
    """Mutating webhooks are called before validating ones; warnings reach the client."""
    configure("Validating", "warn")
    configure("Mutating", "allow")
    found = create(client, namespace)
    assert (201, ('299 - "careful"',)) == (found.status, found.warnings)
    assert ["/allow?timeout=10s", "/warn?timeout=10s"] == [path for path, _ in webhooks.asked]


def test_mutations_are_seen_by_those_after_them(
    client: Client, namespace: str, configure: Configure, webhooks: Served
) -> None:
    """Later webhooks and storage see the changed object; `reinvocationPolicy: IfNeeded` calls a webhook again."""
    configure("Mutating", "allow", "patch", "label", reinvocationPolicy="IfNeeded")
    configure("Validating", "allow")
    found = create(client, namespace)
    assert (201, {"by": "webhook"}, {"seen": "yes"}) == (
        found.status,
        found.body["data"],
        found.body["metadata"]["labels"],
    )
    asked = [path.partition("?")[0].strip("/") for path, _ in webhooks.asked]
    assert ["allow", "patch", "label", "allow", "patch", "allow"] == asked
    for _, review in webhooks.asked[-3:]:
        assert {"by": "webhook"} == review["request"]["object"]["data"]
    assert found.body["data"] == client.get(f"{namespace}/configmaps/c").body["data"]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_calls_that_fail(client: Client, namespace: str, configure: Configure, webhooks: Served, kind: str) -> None:
    """With Fail an internal error that names the webhook and what happened, with Ignore nothing."""
    url = f"https://localhost:{webhooks.port}/allow"
    cases: list[tuple[str, dict[str, Any], str]] = [
        (
            "slow",
            {"timeoutSeconds": 1},
            f'failed to call webhook: Post "https://localhost:{webhooks.port}/slow?timeout=1s": '
            "context deadline exceeded",
        ),
        (
            "allow",
            {"clientConfig": {"url": url}},
            f'failed to call webhook: Post "{url}?timeout=10s": tls: failed to verify certificate: '
            "x509: certificate signed by unknown authority",
        ),
        (
            "allow",
            {"clientConfig": {"url": "https://127.0.0.1:1/x", "caBundle": webhooks.bundle}},
            'failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": '
            "dial tcp 127.0.0.1:1: connect: connection refused",
        ),
        ("other", {}, 'received invalid webhook response: expected response.uid="'),
    ]
    for number, (path, fields, why) in enumerate(cases):
        configure(kind, path, objectSelector={"matchLabels": {"case": str(number)}}, **fields)
        lenient = {"matchLabels": {"case": f"{number}-ignored"}}
        configure(kind, path, objectSelector=lenient, failurePolicy="Ignore", **fields)
        body = {"metadata": {"name": f"c{number}", "labels": {"case": str(number)}}}
        code, reason, text = status_of(client.post(f"{namespace}/configmaps", body))
        head = f'Internal error occurred: failed calling webhook "{path}0.example.com": '
        assert (500, "InternalError", True) == (code, reason, text.startswith(head + why)), text
        body["metadata"]["labels"]["case"] = f"{number}-ignored"  # type: ignore[index]  # a map
        assert 201 == client.post(f"{namespace}/configmaps", body).status


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_a_dry_run_calls_only_webhooks_without_side_effects(
    client: Client, namespace: str, configure: Configure, webhooks: Served, kind: str
) -> None:
    """Webhooks without side effects see `dryRun: true`; a configuration with side effects is rejected."""
    configure(kind, "allow", sideEffects="NoneOnDryRun")
    assert 201 == create(client, namespace, query="?dryRun=All").status
    ((_, review),) = webhooks.asked
    assert (True, ["All"]) == (review["request"]["dryRun"], review["request"]["options"]["dryRun"])
    assert 404 == client.get(f"{namespace}/configmaps/c").status
    # the version that allows this value is no longer served; objects that have it are
    name = namespace.rpartition("/")[2]
    place = f"{GROUP}/{kind.lower()}webhookconfigurations/{name}-0"
    refused = client.merge(place, {"webhooks": [{**client.get(place).body["webhooks"][0], "sideEffects": "Some"}]})
    assert 422 == refused.status


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_match_conditions_decide_whether_a_webhook_is_called(
    client: Client, namespace: str, configure: Configure, webhooks: Served, kind: str
) -> None:
    """A false one passes the webhook over; one that fails refuses with Fail, and passes it over with Ignore."""
    failing = {"name": "data", "expression": "object.data.x == '1'"}
    configure(kind, "deny", matchConditions=[{"name": "named", "expression": "object.metadata.name == 'other'"}])
    assert 201 == create(client, namespace, "a").status
    configure(kind, "deny", matchConditions=[failing], failurePolicy="Ignore")
    assert 201 == create(client, namespace, "b").status
    configure(kind, "deny", matchConditions=[failing])
    why = "expression 'object.data.x == '1'' resulted in error: no such key: data"
    assert (403, "Forbidden", f'configmaps "c" is forbidden: {why}') == status_of(create(client, namespace))
    assert [] == webhooks.asked
    assert 201 == create(client, namespace, "d", data={"x": "2"}).status
    assert 400 == create(client, namespace, "e", data={"x": "1"}).status


def test_object_selectors_look_at_the_old_object_too(
    client: Client, namespace: str, configure: Configure, webhooks: Served
) -> None:
    """Taking the label away does not get an object past a webhook, deleting it neither."""
    configure("Validating", "deny", objectSelector={"matchLabels": {"guarded": "yes"}}, failurePolicy="Fail")
    assert 201 == create(client, namespace).status
    assert 400 == client.merge(f"{namespace}/configmaps/c", {"metadata": {"labels": {"guarded": "yes"}}}).status
    client.delete(f"{GROUP}/validatingwebhookconfigurations/{namespace.rpartition('/')[2]}-0")
    assert 200 == client.merge(f"{namespace}/configmaps/c", {"metadata": {"labels": {"guarded": "yes"}}}).status
    configure("Validating", "deny", objectSelector={"matchLabels": {"guarded": "yes"}})
    assert 400 == client.merge(f"{namespace}/configmaps/c", {"metadata": {"labels": {"guarded": None}}}).status
    assert 400 == client.delete(f"{namespace}/configmaps/c").status


def test_configurations_can_always_be_repaired(client: Client, namespace: str, configure: Configure) -> None:
    """A webhook that matches everything is not called for webhook configurations and admission policies."""
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    name = namespace.rpartition("/")[2]
    configure("Validating", "deny", rules=everything, objectSelector={"matchLabels": {"locked": name}})
    labels = {"labels": {"locked": name}}
    configuration = {"metadata": {"name": f"{name}-other", **labels}}
    binding = {**configuration, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    for plural, body in (
        ("validatingwebhookconfigurations", configuration),
        ("mutatingwebhookconfigurations", configuration),
        ("validatingadmissionpolicybindings", binding),
    ):
        assert 201 == client.post(f"{GROUP}/{plural}", body).status
        assert 200 == client.delete(f"{GROUP}/{plural}/{name}-other").status
    role = {"metadata": {"name": f"{name}-other", **labels}, "rules": []}
    assert 400 == client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).status


def test_connections_are_admitted(client: Client, namespace: str, configure: Configure) -> None:
    """A webhook can deny `kubectl exec` before the sandbox answers that it runs no containers."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
    assert 201 == client.post(f"{namespace}/pods", pod).status
    assert 501 == client.post(f"{namespace}/pods/p/exec?command=ls", None).status
    configure("Validating", "forbid", rules=[rule])
    expected = 'admission webhook "forbid0.example.com" denied the request: not here'
    assert (403, "Forbidden", expected) == status_of(client.post(f"{namespace}/pods/p/exec?command=ls", None))
