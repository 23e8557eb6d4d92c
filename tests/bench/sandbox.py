"""B14: the sandbox: its start, its requests per second, and long lists.

It runs in a process of its own, and only the processor time of that process counts: a slow client or a slow webhook
costs nothing. This module must never serve.
"""

from __future__ import annotations

import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import process_time

import orjson

from pyverno.kube.json import JSONObject
from tests.bench.child import Child
from tests.bench.inputs import small_pod
from tests.bench.measure import compare_commands
from tests.e2e.sandbox.client import Answer, Client

__all__ = [
    "list_ratio",
    "memory",
    "memory_left",
    "patches_per_second",
    "pods_per_second",
    "posts_per_second",
    "reads_per_second",
    "start_ratio",
    "webhook_posts_per_second",
]

PODS = 2000
_MANY = 10_000
_ROUNDS = 5
_RELEASE_SECONDS = 15.0
_REQUESTS = 300
_NAMESPACE = "/api/v1/namespaces/default"
_START = "from kubesandbox import Sandbox\nwith Sandbox(): pass"
_WEBHOOKS = {"MutatingWebhookConfiguration": "mutating", "ValidatingWebhookConfiguration": "validating"}


def start_ratio() -> float:
    """B14: import, start, be ready with all first objects, and stop; by a Python that does nothing."""
    return compare_commands((sys.executable, "-c", _START), (sys.executable, "-c", "pass"), rounds=5).ratio


class _Sandbox:
    """A sandbox in a process of its own, and a client of it."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.client = Client(child.first["kubeconfig"])

    def seconds(self, ask: Callable[[Client], Answer], times: int) -> float:
        """Return the processor time that one request took on the side of the server."""
        ask(self.client)
        before = self._child.ask()["seconds"]
        for _ in range(times):
            answer = ask(self.client)
            if answer.status not in (200, 201):
                raise RuntimeError(f"the sandbox answered {answer.data[:2000]!r}")
        return float(self._child.ask()["seconds"] - before) / times

    def resident(self) -> int:
        """Return the bytes of memory that the process uses."""
        return int(self._child.ask()["bytes"])

    def per_second(self, ask: Callable[[Client], Answer]) -> float:
        """Return how many of these requests one core can answer in a second."""
        return 1 / min(self.seconds(ask, _REQUESTS) for _ in range(_ROUNDS))


@contextmanager
def _sandbox() -> Iterator[_Sandbox]:
    with Child("tests.bench.sandboxing") as child:
        sandbox = _Sandbox(child)
        for name in ("default", "checkout"):
            sandbox.client.post(f"{_NAMESPACE}/serviceaccounts", {"metadata": {"name": name}})
        yield sandbox
        sandbox.client.close()


def posts_per_second() -> float:
    """B14: ConfigMaps that are created."""
    with _sandbox() as sandbox:
        return sandbox.per_second(lambda client: client.post(f"{_NAMESPACE}/configmaps", _config_map()))


def memory() -> float:
    """B14: the KiB of memory that one of many ConfigMaps takes."""
    with _sandbox() as sandbox:
        for _ in range(_REQUESTS):
            sandbox.client.post(f"{_NAMESPACE}/configmaps", _config_map())
        before = sandbox.resident()
        for _ in range(_MANY):
            sandbox.client.post(f"{_NAMESPACE}/configmaps", _config_map())
        return (sandbox.resident() - before) / 1024 / _MANY


def memory_left() -> float:
    """B14: the MiB of memory that are left of many Pods after their deletion."""
    with _sandbox() as sandbox:
        for _ in range(_REQUESTS):
            sandbox.client.post(f"{_NAMESPACE}/pods", _pod())
        before = sandbox.resident()
        for _ in range(PODS):
            sandbox.client.post(f"{_NAMESPACE}/pods", _pod())
        sandbox.client.delete(f"{_NAMESPACE}/pods")
        sandbox.client.close()  # a connection keeps the room of its longest answer
        time.sleep(_RELEASE_SECONDS)
        return (sandbox.resident() - before) / 2**20


def pods_per_second() -> float:
    """B14: Pods of some size that are created: decoded, defaulted, admitted and validated."""
    with _sandbox() as sandbox:
        return sandbox.per_second(lambda client: client.post(f"{_NAMESPACE}/pods", _pod()))


def webhook_posts_per_second() -> float:
    """B14: ConfigMaps created per second when a mutating and a validating webhook review each."""
    with _sandbox() as sandbox, Child("tests.bench.serving", "constant") as webhook:
        for kind, name in _WEBHOOKS.items():
            sandbox.client.post(
                f"/apis/admissionregistration.k8s.io/v1/{name}webhookconfigurations", _configuration(kind, webhook)
            )
        return sandbox.per_second(lambda client: client.post(f"{_NAMESPACE}/configmaps", _config_map()))


def reads_per_second() -> float:
    """B14: one Pod that is read again and again."""
    with _sandbox() as sandbox:
        path = _path_of(sandbox.client.post(f"{_NAMESPACE}/pods", _pod()))
        return sandbox.per_second(lambda client: client.get(path))


def patches_per_second() -> float:
    """B14: merge patches per second that change the labels of one Pod."""
    with _sandbox() as sandbox:
        path = _path_of(sandbox.client.post(f"{_NAMESPACE}/pods", _pod()))
        numbers = iter(range(10**9))
        return sandbox.per_second(
            lambda client: client.merge(path, {"metadata": {"labels": {"number": str(next(numbers))}}})
        )


def list_ratio() -> float:
    """B14: a list of two thousand Pods over HTTPS, by the time that orjson takes to write it."""
    with _sandbox() as sandbox:
        for _ in range(PODS):
            sandbox.client.post(f"{_NAMESPACE}/pods", _pod())
        path = f"{_NAMESPACE}/pods"
        body = sandbox.client.get(path).body
        assert len(body["items"]) == PODS
        served = min(sandbox.seconds(lambda client: client.get(path), 5) for _ in range(_ROUNDS))
        return served / min(_dumping(body) for _ in range(_ROUNDS * 5))


def _dumping(body: JSONObject) -> float:
    started = process_time()
    orjson.dumps(body)
    return process_time() - started


def _config_map() -> JSONObject:
    return {"metadata": {"generateName": "settings-", "labels": {"app": "checkout"}}, "data": {"mode": "fast"}}


def _pod() -> JSONObject:
    """Return a Pod as a client sends it: without the fields that a server sets."""
    pod = small_pod()
    metadata = {key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {"metadata": {**metadata, "generateName": "checkout-"}, "spec": spec}


def _path_of(answer: Answer) -> str:
    return f"{_NAMESPACE}/pods/{answer.body['metadata']['name']}"


def _configuration(kind: str, server: Child) -> JSONObject:
    port, certificate = server.first["port"], server.first["certificate"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    webhook = {
        "name": "bench.example.com",
        "rules": [rule],
        "clientConfig": {
            "url": f"https://127.0.0.1:{port}/review",
            "caBundle": b64encode(certificate.encode()).decode(),
        },
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "bench"},
        "webhooks": [webhook],
    }
