"""Bad input: every request gets the API server's Status, the server keeps running, and no write is lost."""

from __future__ import annotations

import asyncio
import http.client
import logging
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
import pytest

from kubesandbox import Sandbox
from kubesandbox.storage.store import KEPT_CHANGES, Key
from tests.e2e.sandbox.client import Answer, Client

APPLY, JSON_PATCH, MERGE, STRATEGIC = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
WRITES = 20_000


@pytest.fixture(autouse=True)
def _no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client sends may end up in the log as an error of the server."""
    with caplog.at_level(logging.WARNING):
        yield
    assert [] == [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def nested(levels: int) -> bytes:
    """Return so many maps in each other."""
    return b'{"a":' * levels + b"1" + b"}" * levels


def outcome(answer: Answer) -> tuple[int, str]:
    """Return code and reason of a Status, and check that its body repeats the code."""
    body = answer.body
    assert ("Status", answer.status) == (body["kind"], body["code"])
    return answer.status, body.get("reason", "")


@pytest.mark.parametrize("field", [b"data", b"x", b"metadata"])
def test_objects_of_ten_thousand_levels_are_refused(client: Client, namespace: str, field: bytes) -> None:
    """Wherever the depth is, and however it is written."""
    body = b'{"%b": %b}' % (field, nested(10_000))
    path = f"{namespace}/configmaps"
    started = time.process_time()  # the sandbox is a thread of this process
    for method, place, kind in (
        ("POST", path, "application/json"),
        ("POST", path, "application/yaml"),
        ("PATCH", namespace, MERGE),
        ("PATCH", namespace, STRATEGIC),
        ("PATCH", f"{path}/x?fieldManager=m", APPLY),
        ("DELETE", f"{path}/x", "application/json"),
    ):
        assert (400, "BadRequest") == outcome(client.send(method, place, body, kind)), kind
    operation = b'[{"op": "add", "path": "/data", "value": %b}]' % nested(10_000)
    assert (400, "BadRequest") == outcome(client.send("PATCH", namespace, operation, JSON_PATCH))
    assert time.process_time() - started < 15


def test_large_bodies_are_refused_in_parts_too(client: Client, namespace: str) -> None:
    """7 MiB are refused with and without a Content-Length; the first connection stays usable."""
    path = f"{namespace}/configmaps"
    connection = client.connection
    assert (413, "RequestEntityTooLarge") == outcome(client.post(path, b"x" * (7 << 20)))
    assert (200, connection) == (client.get(path).status, client.connection)
    with closing(http.client.HTTPSConnection(client.host, context=client.context, timeout=300)) as other:
        other.request("POST", path, iter([b"x" * (1 << 20)] * 7), encode_chunked=True)
        with other.getresponse() as response:
            assert 413 == response.status


@pytest.mark.parametrize(
    "data",
    [b"", b"nu", b'{"a": NaN}', b'"text"', b"[1]", b'{"kind": 1}', b"\x1f\x8b\x08", b"{} {}"],
)
def test_bodies_that_are_no_objects_are_refused(client: Client, namespace: str, data: bytes) -> None:
    """As JSON and as the patches that are JSON."""
    assert (400, "BadRequest") == outcome(client.post(f"{namespace}/configmaps", data))
    for kind in (JSON_PATCH, MERGE, STRATEGIC):
        code, _ = outcome(client.send("PATCH", namespace, data, kind))
        # those that are objects say something about the namespace, and patches of it are fine
        assert code in (400, 422), kind


def test_compressed_bodies_are_not_opened(client: Client, namespace: str) -> None:
    """An API server knows none, and a small one could become a large one."""
    answer = client.send("POST", f"{namespace}/configmaps", b"\x1f\x8b\x08\x00", Content_Encoding="gzip")
    assert (400, "BadRequest") == outcome(answer)


@pytest.mark.parametrize("tail", [0, 1, 2, 5, 20, 60])
def test_cut_protobuf_is_refused(client: Client, namespace: str, tail: int) -> None:
    """Wherever it ends."""
    # runtime.Unknown with the type of a ConfigMap, and a ConfigMap whose name says to be longer than it is
    whole = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x0a\x05\x0a\x7fabc"
    answer = client.send("POST", f"{namespace}/configmaps", whole[: len(whole) - tail], _PROTOBUF)
    assert (400, "BadRequest") == outcome(answer)


_PROTOBUF = "application/vnd.kubernetes.protobuf"


def test_aliases_do_not_explode(client: Client, namespace: str) -> None:
    """A page of YAML that would become gigabytes."""
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%b]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)]
    answer = client.send("POST", f"{namespace}/configmaps", b"\n".join(lines), "application/yaml")
    assert (400, "BadRequest") == outcome(answer)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=x", (400, "BadRequest")),
        ("timeoutSeconds=x", (400, "BadRequest")),
        ("continue=%25%25", (400, "BadRequest")),
        ("continue=bm9uc2Vuc2U", (400, "BadRequest")),
        ("labelSelector=a+in+(", (400, "BadRequest")),
        ("fieldSelector=a!!b", (400, "BadRequest")),
        ("fieldSelector=spec.nothing%3Dx", (400, "BadRequest")),
        ("resourceVersion=x", (400, "BadRequest")),
        ("resourceVersion=999999999", (504, "Timeout")),
        ("resourceVersionMatch=Never&resourceVersion=1", (422, "Invalid")),
        ("watch=true&resourceVersion=x", (500, "")),
    ],
)
def test_lists_that_make_no_sense_are_refused(
    client: Client, namespace: str, query: str, expected: tuple[int, str]
) -> None:
    """Before anything is sent."""
    assert expected == outcome(client.get(f"{namespace}/configmaps?{query}"))


@pytest.mark.parametrize("query", ["dryRun=Some", "fieldValidation=Some", f"fieldManager={'x' * 200}"])
def test_options_that_do_not_exist_are_refused(client: Client, namespace: str, query: str) -> None:
    """And nothing is written."""
    body = {"metadata": {"name": "a"}}
    assert (422, "Invalid") == outcome(client.post(f"{namespace}/configmaps?{query}", body))
    assert (404, "NotFound") == outcome(client.get(f"{namespace}/configmaps/a"))


def test_unknown_fields_are_reported_by_their_paths(client: Client, namespace: str) -> None:
    """All of them, when the client wants it strict."""
    spec = {"containers": [{"name": "a", "image": "b", "imagge": "c"}], "hostNetwrk": True}
    answer = client.post(f"{namespace}/pods?fieldValidation=Strict", {"metadata": {"name": "p"}, "spec": spec})
    assert (400, "BadRequest") == outcome(answer)
    assert answer.message.endswith(
        'strict decoding error: unknown field "spec.containers[0].imagge", unknown field "spec.hostNetwrk"'
    )


def test_old_versions_change_nothing(client: Client, namespace: str) -> None:
    """Every kind of write that carries a resourceVersion or precondition is a conflict."""
    path = f"{namespace}/configmaps/a"
    old = client.post(f"{namespace}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}}).body
    client.merge(path, {"data": {"x": "2"}})
    version = old["metadata"]["resourceVersion"]
    stale = {"metadata": {"resourceVersion": version}}
    conflict = (409, "Conflict")
    assert conflict == outcome(client.send("PUT", path, {**old, "data": {"x": "3"}}))
    assert conflict == outcome(client.merge(path, {**stale, "data": {"x": "3"}}))
    assert conflict == outcome(client.send("PATCH", path, {**stale, "data": {"x": "3"}}, STRATEGIC))
    operations = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    assert conflict == outcome(client.send("PATCH", path, operations, JSON_PATCH))
    assert conflict == outcome(client.delete(path, {"preconditions": {"resourceVersion": version}}))
    assert conflict == outcome(client.delete(path, {"preconditions": {"uid": "0000"}}))
    assert {"x": "2"} == client.get(path).body["data"]


def test_names_from_elsewhere_are_names(client: Client, namespace: str) -> None:
    """Escaped slashes, zeros and broken UTF-8 name objects that are not there."""
    for name in ("%00", "a%2Fb", "%ff%fe", quote("ä" * 300), "..%2F..%2Fsecrets"):
        assert 404 == client.get(f"{namespace}/configmaps/{name}").status


def test_huge_headers_are_refused(client: Client) -> None:
    """Above one MiB, as Go does; thousands of small ones are fine."""
    for path, headers in (
        ("/api/v1/pods", {"X_Large": "x" * (2 << 20)}),
        (f"/api/v1/pods?labelSelector={'x' * (2 << 20)}", {}),
    ):
        answer = client.get(path, **headers)
        assert (431, b"431 Request Header Fields Too Large") == (answer.status, answer.data)
        client.close()
    assert 200 == client.get("/api/v1/pods", **{f"X_{number}": "1" for number in range(2000)}).status


def connected(sandbox: Sandbox, context: ssl.SSLContext | None) -> socket.socket:
    """Open a connection, with TLS if there is a context."""
    place = urlsplit(sandbox.url)
    raw = socket.create_connection((place.hostname, place.port), timeout=300)
    return raw if context is None else context.wrap_socket(raw, server_hostname=place.hostname)


def test_half_open_connections_do_not_block_others(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """No TLS, TLS without a request, half a head, half a body, half a chunk, nonsense: others are served."""
    path = f"{namespace}/configmaps"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
    with ExitStack() as opened:
        opened.enter_context(connected(sandbox, None))
        for sent in (
            b"",
            head,
            head + b"Content-Length: 100\r\n\r\n{",
            head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
            head + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
            b"nonsense\r\n\r\n",
            b"\x00" * 100,
        ):
            one = opened.enter_context(connected(sandbox, client.context))
            one.sendall(sent)
        for number in range(20):
            assert 201 == client.post(path, {"metadata": {"name": f"c{number}"}}).status
        assert 20 == len(client.get(path).body["items"])


def test_clients_that_go_away_lose_no_write_of_others(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """A request whose answer is never read is applied whole or not at all; the server keeps serving."""
    path = f"{namespace}/configmaps"
    for number in range(30):
        body = orjson.dumps({"metadata": {"name": f"gone-{number}"}, "data": {"x": "y" * 1000}})
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        with connected(sandbox, client.context) as one:
            one.sendall(head.encode() + b"\r\n" + body)
        assert 201 == client.post(path, {"metadata": {"name": f"kept-{number}"}}).status
    found = client.get(path).body["items"]
    assert 30 == sum(item["metadata"]["name"].startswith("kept-") for item in found)
    assert {"y" * 1000} >= {item["data"]["x"] for item in found if item["metadata"]["name"].startswith("gone-")}


def test_slow_bodies_are_waited_for(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """Byte by byte, while others are served."""
    path = f"{namespace}/configmaps"
    body = b'{"metadata": {"name": "slow"}}'
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with connected(sandbox, client.context) as slow:
        slow.sendall(head.encode())
        for place in range(len(body)):
            slow.sendall(body[place : place + 1])
            assert 200 == client.get("/healthz").status
        assert slow.recv(100).startswith(b"HTTP/1.1 201")


def test_watchers_that_never_read_are_left_behind(sandbox: Sandbox) -> None:
    """The watcher does not slow down 20,000 writes; once it reads, it gets an error about missed events.

    A list that began before the writes has expired too, and its error holds a new token to continue with.
    """
    client = Client(sandbox.kubeconfig)
    client.post("/api/v1/namespaces", {"metadata": {"name": "busy"}})
    path = "/api/v1/namespaces/busy/configmaps"
    for name in ("a", "b"):
        client.post(path, {"metadata": {"name": name}, "data": {"n": "0"}})
    page = client.get(f"{path}?limit=1").body["metadata"]
    with connected(sandbox, client.context) as watcher:
        watcher.sendall(
            f"GET {path}?watch=true&resourceVersion={page['resourceVersion']} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        loop = sandbox._loop
        assert loop is not None
        asyncio.run_coroutine_threadsafe(_write(sandbox), loop).result(300)
        assert 200 == client.merge(f"{path}/a", {"data": {"last": "yes"}}).status

        events = _events(watcher)
    seen = [event["type"] for event in events]
    assert ({"MODIFIED"}, "ERROR") == ({*seen[:-1]}, seen[-1])
    assert (410, "Expired") == (events[-1]["object"]["code"], events[-1]["object"]["reason"])
    assert len(seen) < WRITES - KEPT_CHANGES + 1
    assert {"n": str(WRITES), "x": _FILLING, "last": "yes"} == client.get(f"{path}/a").body["data"]

    late = client.get(f"{path}?watch=true&resourceVersion={page['resourceVersion']}")
    assert (200, "ERROR", 410) == (late.status, late.body["type"], late.body["object"]["code"])
    refused = client.get(f"{path}?limit=1&continue={page['continue']}")
    assert (410, "Expired") == outcome(refused)
    rest = client.get(f"{path}?limit=1&continue={refused.body['metadata']['continue']}").body
    assert ["b"] == [item["metadata"]["name"] for item in rest["items"]]
    client.close()


def test_a_watcher_that_goes_away_is_no_error(sandbox: Sandbox, client: Client, namespace: str) -> None:
    """Neither a close nor a reset in the middle of events is logged, and writes of others succeed."""
    path = f"{namespace}/configmaps"
    for linger in (False, True):
        with connected(sandbox, client.context) as watcher:
            watcher.sendall(f"GET {path}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert watcher.recv(100).startswith(b"HTTP/1.1 200")
            if linger:
                watcher.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for number in range(40):
            body = {"metadata": {"name": f"c-{linger}-{number}".lower()}, "data": {"x": "y" * 4000}}
            assert 201 == client.post(path, body).status
    assert 200 == client.get(path).status


_FILLING = "x" * 4000
"""More than all buffers between server and client can hold, times the number of writes."""


async def _write(sandbox: Sandbox) -> None:
    """Write to the store, in the loop of the server, with time for others now and then."""
    store = sandbox.server.store
    key = Key("configmaps", "busy", "a")
    for number in range(1, WRITES + 1):
        state = store.get(key)
        assert state is not None
        store.put(key, {**state.body, "data": {"n": str(number), "x": _FILLING}})
        if number % 100 == 0:
            await asyncio.sleep(0)


def _events(watcher: socket.socket) -> list[Any]:
    """Read a watch to its end."""
    data = bytearray()
    while not data.endswith(b"\r\n0\r\n\r\n"):
        found = watcher.recv(1 << 20)
        assert found, "the watch ended without its end"
        data += found
    place, lines = data.index(b"\r\n\r\n") + 4, bytearray()
    while place < len(data):
        end = data.index(b"\r\n", place)
        size = int(data[place:end], 16)
        lines += data[end + 2 : end + 2 + size]
        place = end + 2 + size + 2
    return [orjson.loads(line) for line in lines.splitlines()]
