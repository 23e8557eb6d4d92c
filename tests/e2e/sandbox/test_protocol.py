"""The protocol: paths, methods, media types, errors, watches, documents."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubesandbox import Sandbox
from tests.e2e.sandbox.client import Client
from tests.unit.kubesandbox.serving import definition, widget

NOT_FOUND = (404, "the server could not find the requested resource")
NOT_ALLOWED = (405, "the server does not allow this method on the requested resource")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/foos", NOT_FOUND),
        ("GET", "/api/v1/nodes/x/y", NOT_FOUND),
        ("GET", "/apis/apps/v9", NOT_FOUND),
        ("GET", "/api/v1/pods/x", NOT_FOUND),
        ("GET", "/api/v1/namespaces/default/nodes", NOT_FOUND),
        ("GET", "/api/v1/namespaces/default/pods/x/exec/y", NOT_FOUND),
        ("POST", "/api/v1/pods", NOT_ALLOWED),
        ("PUT", "/api/v1/namespaces/default/pods", NOT_ALLOWED),
        ("PATCH", "/api/v1/namespaces/default/pods", NOT_ALLOWED),
        ("DELETE", "/api/v1/pods", NOT_ALLOWED),
        ("OPTIONS", "/api/v1/namespaces/default/pods", NOT_ALLOWED),
        ("POST", "/api/v1/namespaces/default/pods/x", NOT_ALLOWED),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", NOT_ALLOWED),
        ("POST", "/api", NOT_ALLOWED),
        ("HEAD", "/version", (405, "")),
        ("FOO", "/api/v1/namespaces/default/pods", NOT_ALLOWED),
        ("GET", "/api/v1/namespaces/default/pods/..", (400, "Name parameter invalid: \"..\": may not be '..'")),
        ("GET", "/api/v1/namespaces/default/pods/a%25b", (400, "Name parameter invalid: \"a%b\": may not contain '%'")),
        ("GET", "/api/v1/namespaces/default/pods/x%2Fy", NOT_FOUND),
        ("GET", "/api/v1/namespaces/default/pods/x/exec", (404, 'pods "x" not found')),
        ("GET", "/api%2Fv1/nodes/n", (404, 'nodes "n" not found')),
    ],
)
def test_paths_and_methods_that_are_not_served(
    client: Client, method: str, path: str, expected: tuple[int, str]
) -> None:
    """A Status with the API server's text."""
    answer = client.send(method, path, {})
    assert expected == (answer.status, answer.message if answer.data else "")
    assert "no-cache, private" == answer.headers["Cache-Control"]


def test_unknown_paths_are_plain_text(client: Client) -> None:
    """As Go's server answers."""
    group = "/apis/nothing"
    for path in ("/nothing", group, f"{group}/v1", f"{group}/v1/x/y", "/readyz/nothing", "/healthz/", "//api/v1/pods"):
        answer = client.get(path)
        assert (404, "text/plain; charset=utf-8", b"404 page not found\n") == (
            answer.status,
            answer.headers["Content-Type"],
            answer.data,
        )


@pytest.mark.parametrize(
    ("accept", "path", "status", "kind"),
    [
        ("text/html", "/api/v1/nodes", 406, "application/json"),
        ("application/*", "/api/v1/nodes", 406, "application/json"),
        ("application/JSON", "/api/v1/nodes", 406, "application/json"),
        ("application/*,application/json;q=0.1", "/api/v1/nodes", 200, "application/json"),
        ("application/*", "/api/v1", 406, "application/json"),
        ("application/*", "/apis/apps", 200, "application/json"),
        ("text/html,*/*;q=0.1", "/api/v1", 200, "application/json"),
        ("application/yaml", "/apis/apps/v1", 200, "application/yaml"),
        ("application/yaml", "/version", 406, "application/json"),
        (TABLE, "/apis", 406, "application/json"),
    ],
)
def test_forms_that_can_not_be_written_are_refused(
    client: Client, accept: str, path: str, status: int, kind: str
) -> None:
    """Documents of discovery are found by media types that are written out."""
    answer = client.get(path, Accept=accept)
    assert (status, kind) == (answer.status, answer.headers["Content-Type"].partition(";")[0])
    if status == 406:
        assert "NotAcceptable" == answer.body["reason"]


def test_deprecated_kinds_give_a_warning(client: Client, namespace: str) -> None:
    """With every request, also those that are refused, and by watches."""
    text = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    for path in ("endpoints", "endpoints/nothing", "endpoints?watch=1&timeoutSeconds=1"):
        assert (text,) == client.get(f"{namespace}/{path}").warnings
    assert () == client.get(f"{namespace}/configmaps").warnings
    old = {"name": "v0", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    crd = definition("oldies", "Oldie")
    crd["metadata"]["name"], crd["spec"]["group"] = "oldies.old.example.com", "old.example.com"
    crd["spec"]["versions"] += [{**old, "deprecated": True}]
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    found = [client.get(f"/apis/old.example.com/{version}/oldies").warnings for version in ("v0", "v1")]
    assert [('299 - "old.example.com/v0 Oldie is deprecated"',), ()] == found


def test_a_version_that_is_still_to_come_is_waited_for(client: Client, namespace: str) -> None:
    """By reads of one object, too; one that is no number is none."""
    client.post(f"{namespace}/configmaps", config_map("a"))
    found = [client.get(f"{namespace}/configmaps/a?resourceVersion={text}") for text in ("0", "99999999", "x")]
    assert [200, 504, 500] == [answer.status for answer in found]
    assert "1" == found[1].headers["Retry-After"]


def test_bodies_have_a_limit(client: Client, namespace: str) -> None:
    """3 MiB, and the connection lives on."""
    answer = client.post(f"{namespace}/configmaps", b'{"data": "' + b"x" * (3 << 20))
    assert (413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728") == (
        answer.status,
        answer.body["reason"],
        answer.message,
    )
    client.close()
    assert 200 == client.get(f"{namespace}/configmaps").status


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b'{"a":', "application/json", 400),
        (b"a: [", "application/yaml", 400),
        (b"\xff\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"a":' * 9000, "application/json", 400),
        (b"k8s\x00\xff\xff\xff", "application/vnd.kubernetes.protobuf", 400),
        (b"nonsense", "application/vnd.kubernetes.protobuf", 400),
        (b"{}", "text/plain", 415),
    ],
)
def test_bodies_that_can_not_be_read(client: Client, namespace: str, data: bytes, kind: str, status: int) -> None:
    """Never an InternalError, never a traceback."""
    answer = client.send("POST", f"{namespace}/configmaps", data, kind)
    assert (status, "Status") == (answer.status, answer.body["kind"])


def test_objects_may_be_deep(client: Client, namespace: str) -> None:
    """Up to 10,000 levels; in built-in kinds unknown parts are dropped."""
    deep = b'{"metadata": {"name": "deep"}, "x": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    answer = client.post(f"{namespace}/configmaps", deep)
    assert answer.status in (201, 400)
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", preserving())
    path = f"/apis/deep.example.com/v1/namespaces/{namespace.rpartition('/')[2]}/deeps"
    head = b'{"apiVersion": "deep.example.com/v1", "kind": "Deep", "metadata": {"name": "d"}, "x": '
    for depth, status in ((100, 201), (400, 201), (9000, 201), (10_001, 400)):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        answer = client.post(path, head + nested + b"}")
        assert (status, status == 201) == (answer.status, nested in client.get(path).data), answer.data[:200]
        client.delete(f"{path}/d")


def preserving() -> dict[str, Any]:
    """Return a definition whose objects may hold anything."""
    crd = definition(
        "deeps", "Deep", schema={"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    )
    crd["metadata"]["name"] = "deeps.deep.example.com"
    crd["spec"]["group"] = "deep.example.com"
    del crd["spec"]["versions"][0]["subresources"]
    return crd


def test_clients_that_expect_100_continue_get_it(client: Client, namespace: str) -> None:
    """curl does so with large bodies."""
    plain = client.context.wrap_socket(
        socket.create_connection((client.host.split(":")[0], int(client.host.split(":")[1]))),
        server_hostname="127.0.0.1",
    )
    body = b'{"metadata": {"name": "expected"}}'
    head = ("Host: x", f"Content-Length: {len(body)}", "Expect: 100-continue", "", "")
    plain.sendall("\r\n".join((f"POST {namespace}/configmaps HTTP/1.1", *head)).encode())
    assert b"HTTP/1.1 100 Continue\r\n\r\n" == plain.recv(100)
    plain.sendall(body)
    assert plain.recv(100).startswith(b"HTTP/1.1 201 Created")
    plain.close()


def test_objects_live_and_die(client: Client, namespace: str) -> None:
    """Create, read, replace, patch, delete; with the codes of HTTP."""
    path = f"{namespace}/configmaps"
    made = client.post(path, config_map("a", x="1"))
    assert (201, {"x": "1"}) == (made.status, made.body["data"])
    assert 409 == client.post(path, config_map("a")).status
    read = client.get(f"{path}/a").body
    assert ("ConfigMap", made.body["metadata"]["uid"]) == (read["kind"], read["metadata"]["uid"])
    assert {"x": "2"} == client.send("PUT", f"{path}/a", {**read, "data": {"x": "2"}}).body["data"]
    assert 409 == client.send("PUT", f"{path}/a", read).status
    assert {"x": "2", "y": "3"} == client.merge(f"{path}/a", {"data": {"y": "3"}}).body["data"]
    gone = client.delete(f"{path}/a")
    assert (200, "Success") == (gone.status, gone.body["status"])
    assert (404, 'configmaps "a" not found') == (client.get(f"{path}/a").status, client.get(f"{path}/a").message)


def test_warnings_are_headers(client: Client, namespace: str) -> None:
    """One per unknown field; strict clients are refused instead."""
    body = {"metadata": {"name": "w"}, "dat": {}, "kin": 1}
    answer = client.post(f"{namespace}/configmaps?dryRun=All", body)
    assert ('299 - "unknown field \\"dat\\""', '299 - "unknown field \\"kin\\""') == answer.warnings
    strict = client.post(f"{namespace}/configmaps?fieldValidation=Strict", body)
    assert (400, ()) == (strict.status, strict.warnings)


def test_apply_creates_and_changes(client: Client, namespace: str) -> None:
    """YAML bodies are accepted; a second field manager gets a conflict unless it forces."""
    path = f"{namespace}/configmaps/s"
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {a: b}\n"
    kind = "application/apply-patch+yaml"
    assert [201, 200] == [client.send("PATCH", f"{path}?fieldManager=one", text, kind).status for _ in range(2)]
    other = client.send("PATCH", f"{path}?fieldManager=two", text.replace(b"b}", b"c}"), kind)
    assert (409, ["FieldManagerConflict"]) == (
        other.status,
        [cause["reason"] for cause in other.body["details"]["causes"]],
    )
    assert 200 == client.send("PATCH", f"{path}?fieldManager=two&force=true", text.replace(b"b}", b"c}"), kind).status


def test_lists_come_in_pages(client: Client, namespace: str) -> None:
    """All pages together are the list."""
    path = f"{namespace}/configmaps"
    for number in range(7):
        client.post(path, config_map(f"c{number}"))
    names, token = [], ""
    while True:
        page = client.get(f"{path}?limit=3&continue={token}").body
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert [f"c{number}" for number in range(7)] == names


def test_tables_are_for_people(client: Client, namespace: str) -> None:
    """A Table has columns for people, and `includeObject` controls the objects in its rows."""
    client.post(f"{namespace}/configmaps", config_map("a", x="1", y="2"))
    table = client.get(f"{namespace}/configmaps?includeObject=None", Accept=TABLE).body
    assert ["Name", "Data", "Age"] == [column["name"] for column in table["columnDefinitions"]]
    assert [["a", 2]] == [row["cells"][:2] for row in table["rows"]]


def test_a_watch_streams_changes(client: Client, namespace: str) -> None:
    """From the version of a list on."""
    path = f"{namespace}/configmaps"
    version = client.get(path).body["metadata"]["resourceVersion"]
    events = client.watch(f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=60")
    client.post(path, config_map("a"))
    client.merge(f"{path}/a", {"data": {"x": "1"}})
    client.delete(f"{path}/a")
    seen = [next(events) for _ in range(3)]
    assert ["ADDED", "MODIFIED", "DELETED"] == [event["type"] for event in seen]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    assert versions == sorted({*versions})
    events.close()  # type: ignore[attr-defined]  # a generator


def test_a_watch_list_ends_its_beginning_with_a_bookmark(client: Client, namespace: str) -> None:
    """Newer informers hang without it."""
    path = f"{namespace}/configmaps"
    client.post(path, config_map("a"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = client.watch(f"{path}?{query}&timeoutSeconds=60")
    added, bookmark = next(events), next(events)
    assert ("ADDED", "BOOKMARK") == (added["type"], bookmark["type"])
    assert {"k8s.io/initial-events-end": "true"} == bookmark["object"]["metadata"]["annotations"]
    events.close()  # type: ignore[attr-defined]  # a generator


def test_a_watch_ends_when_its_time_is_up(client: Client, namespace: str) -> None:
    """Without an error."""
    started = time.monotonic()
    assert [] == list(client.watch(f"{namespace}/configmaps?watch=true&timeoutSeconds=1"))
    assert time.monotonic() - started > 0.9


def test_slow_watchers_do_not_block_writers(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """Writes succeed while one watcher never reads."""
    path = f"{namespace}/configmaps"
    place = urlsplit(sandbox.url)
    raw = socket.create_connection((place.hostname, place.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow = client.context.wrap_socket(raw, server_hostname=place.hostname)
    slow.sendall(f"GET {path}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    body = {"metadata": {"name": "big"}, "data": {"x": "y" * 500_000}}
    client.post(path, body)
    for number in range(20):
        assert 200 == client.merge(f"{path}/big", {"data": {"n": str(number)}}).status
    slow.close()


def test_answers_are_one_after_another_on_one_connection(client: Client) -> None:
    """Keep-alive, also after errors."""
    for path, status in (("/healthz", 200), ("/nothing", 404), ("/api/v1/pods", 200), ("/api/v1/foos", 404)):
        assert status == client.get(path).status
        assert client.connection.sock is not None


def test_documents_that_were_seen_are_not_sent_again(client: Client) -> None:
    """ETags of discovery and OpenAPI; a hash in the query makes it immutable."""
    index = client.get("/openapi/v3")
    assert 304 == client.get("/openapi/v3", If_None_Match=index.headers["ETag"]).status
    place = index.body["paths"]["apis/apps/v1"]["serverRelativeURL"]
    document = client.get(place)
    assert ("public, immutable", "3.0.0") == (document.headers["Cache-Control"], document.body["openapi"])
    assert 304 == client.get(place, If_None_Match=document.headers["ETag"]).status
    moved = client.get(f"{place.partition('?')[0]}?hash=OLD")
    assert (301, place) == (moved.status, moved.headers["Location"])
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = client.get("/apis", Accept=accept)
    assert "APIGroupDiscoveryList" == groups.body["kind"]
    assert 304 == client.get("/apis", Accept=accept, If_None_Match=groups.headers["ETag"]).status


def test_the_server_reports_its_health(client: Client) -> None:
    """Health, version, metrics, keys of tokens."""
    assert (b"ok", b"ok", b"ok") == tuple(client.get(path).data for path in ("/healthz", "/livez", "/readyz/ping"))
    assert b"readyz check passed" in client.get("/readyz?verbose").data
    assert "v1.35.0" == client.get("/version").body["gitVersion"]
    assert b'apiserver_resource_objects{group="",resource="namespaces"}' in client.get("/metrics").data
    assert "RS256" == client.get("/openid/v1/jwks").body["keys"][0]["alg"]
    assert "/apis/apps/v1" in client.get("/").body["paths"]


def test_definitions_are_served_at_once_and_gone_at_once(client: Client, namespace: str) -> None:
    """Discovery, OpenAPI, objects, tables."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    column = {"name": "Color", "type": "string", "jsonPath": ".spec.color"}
    client.post(crds, definition("widgets", "Widget", additionalPrinterColumns=[column]))
    path = f"/apis/example.com/v1/namespaces/{namespace.rpartition('/')[2]}/widgets"
    assert 201 == client.post(path, widget("w", replicas=1)).status
    assert [["w", "grey"]] == [row["cells"] for row in client.get(path, Accept=TABLE).body["rows"]]
    names = [item["name"] for item in client.get("/apis/example.com/v1").body["resources"]]
    assert ["widgets", "widgets/status", "widgets/scale"] == names
    assert "apis/example.com/v1" in client.get("/openapi/v3").body["paths"]
    assert 415 == client.send("PATCH", f"{path}/w", {}, "application/strategic-merge-patch+json").status
    events = client.watch(f"{path}?watch=true&timeoutSeconds=60")
    assert "ADDED" == next(events)["type"]
    assert 200 == client.delete(f"{crds}/widgets.example.com").status
    assert ["DELETED"] == [event["type"] for event in events]
    assert 404 == client.get(path).status
    assert "apis/example.com/v1" not in client.get("/openapi/v3").body["paths"]


def test_pods_without_containers_have_no_insides(client: Client, namespace: str) -> None:
    """Logs are a fixed text; exec, attach, portforward and proxy answer NotImplemented."""
    pods = f"{namespace}/pods"
    spec = {"containers": [{"name": "a", "image": "nginx"}]}
    client.post(pods, {"metadata": {"name": "p"}, "spec": spec})
    assert b"the sandbox runs no containers, so there are no logs\n" == client.get(f"{pods}/p/log").data
    for name in ("exec", "attach", "portforward", "proxy"):
        answer = client.post(f"{pods}/p/{name}", b"")
        assert (501, "NotImplemented") == (answer.status, answer.body["reason"])


def test_the_user_of_a_request_decides(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """Authentication by certificate, token and impersonation, and anonymous access."""
    anonymous = Client(sandbox.kubeconfig, is_anonymous=True)
    assert 200 == anonymous.get("/healthz").status
    answer = anonymous.get(f"{namespace}/pods")
    assert 403 == answer.status
    assert answer.message.startswith('pods is forbidden: User "system:anonymous" cannot list resource "pods"')
    anonymous.close()
    stranger = Client(sandbox.kubeconfig, token="nonsense")  # noqa: S106  # nobody's
    assert 401 == stranger.get("/api").status
    stranger.close()
    name = namespace.rpartition("/")[2]
    issued = client.post(f"{namespace}/serviceaccounts/default/token", {"spec": {}}).body["status"]["token"]
    account = Client(sandbox.kubeconfig, token=issued)
    answer = account.get(f"{namespace}/pods")
    assert f'User "system:serviceaccount:{name}:default" cannot list' in answer.message
    asked = client.get(f"{namespace}/pods", Impersonate_User="jane")
    assert 'User "jane" cannot list resource "pods"' in asked.message
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    review = client.send("POST", path, {}, Impersonate_User="jane", Impersonate_Group="devs")
    assert (201, "jane") == (review.status, review.body["status"]["userInfo"]["username"])
    question = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": name}}}
    review = account.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", question)
    assert (201, False) == (review.status, review.body["status"]["allowed"])
    account.close()


def test_certificates_of_strangers_are_not_accepted(sandbox: Sandbox) -> None:
    """Only those that the sandbox has signed."""
    place = urlsplit(sandbox.url)
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLCertVerificationError), socket.create_connection((place.hostname, place.port)) as raw:
        context.wrap_socket(raw, server_hostname=place.hostname)


def test_many_clients_at_once(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """Every write of concurrent clients succeeds, and every resourceVersion is unique."""
    versions: list[str] = []

    def work(number: int) -> None:
        own = Client(sandbox.kubeconfig)
        for index in range(10):
            answer = own.post(f"{namespace}/configmaps", config_map(f"c-{number}-{index}"))
            versions.append(answer.body["metadata"]["resourceVersion"])
        own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 40 == len({*versions}) == len(client.get(f"{namespace}/configmaps").body["items"])
