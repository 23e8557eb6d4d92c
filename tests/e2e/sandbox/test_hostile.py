"""Malformed requests: each is answered with a specific Status, none with an InternalError."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from kubesandbox import Sandbox
from kubesandbox.types.resources import ResourceType, builtin_table
from tests.e2e.sandbox.client import Client
from tests.unit.kubesandbox.serving import config_map, definition, deployment, pod, widget

VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**20, "", "x", "a/b", "\x00", "é" * 300, "2020-01-01T00:00:00Z"),
    *([], [1], ["x"], [{}], [None], {}, {"a": "b"}, {"a": 1}, {"matchLabels": {"a": "b"}}),
)
FIELDS = (
    *("metadata", "spec", "status", "data", "name", "namespace", "labels", "annotations", "finalizers", "uid"),
    *("ownerReferences", "generateName", "managedFields", "deletionTimestamp", "resourceVersion", "kind"),
    *("apiVersion", "replicas", "selector", "template", "containers", "ports", "type", "rules", "versions", "names"),
    *("schema", "webhooks", "target", "subjects", "roleRef", "conditions", "$patch", "$retainKeys", "conversion"),
)
PATCHES = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
QUERIES = ("limit=1", "labelSelector=a", "fieldSelector=spec.x=1", "watch=1&timeoutSeconds=0", "resourceVersion=x")
REQUESTS = 500


class Stranger:
    """Makes up requests."""

    def __init__(self, seed: int, types: list[ResourceType]) -> None:
        self.chance = random.Random(seed)  # noqa: S311  # no secrets
        self.types = types

    def value(self, depth: int = 0) -> Any:
        """Return any JSON."""
        if depth > 3 or self.chance.random() < 0.4:
            return self.chance.choice(VALUES)
        if self.chance.random() < 0.2:
            return [self.value(depth + 1) for _ in range(self.chance.randint(0, 2))]
        return {self.chance.choice(FIELDS): self.value(depth + 1) for _ in range(self.chance.randint(0, 4))}

    def body(self, kind: ResourceType) -> Any:
        """Return something that begins like an object."""
        body: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind}
        body["metadata"] = {"name": self.chance.choice("abc"), self.chance.choice(FIELDS): self.value(2)}
        return body | {self.chance.choice(FIELDS): self.value() for _ in range(self.chance.randint(0, 3))}

    def patch(self, form: str) -> Any:
        """Return something that looks like a patch."""
        if form != "json-patch+json":
            return {self.chance.choice(FIELDS): self.value(1), "metadata": {self.chance.choice(FIELDS): self.value(2)}}
        steps = [*FIELDS, "0", "-"]
        return [
            {
                "op": self.chance.choice(["add", "replace", "remove", "copy", "test"]),
                "path": "".join(f"/{self.chance.choice(steps)}" for _ in range(self.chance.randint(0, 3))),
                "from": "/metadata/name",
                "value": self.value(2),
            }
        ]

    def request(self) -> tuple[str, str, Any, str]:
        """Return method, path, body and content type."""
        kind, method = self.chance.choice(self.types), self.chance.choice(["POST", "PUT", "PATCH", "DELETE", "GET"])
        path = f"/apis/{kind.group}/{kind.version}" if kind.group else "/api/v1"
        path += f"/namespaces/default/{kind.plural}" if kind.namespaced else f"/{kind.plural}"
        if method != "POST":
            path += f"/{self.chance.choice('abc')}"
        if kind.subresources and method != "POST" and self.chance.random() < 0.3:
            path += f"/{self.chance.choice(kind.subresources)}"
        if method == "PATCH":
            form = self.chance.choice(PATCHES)
            query = "?fieldManager=x&force=true" if form.startswith("apply") else ""
            return method, path + query, self.patch(form), f"application/{form}"
        query = f"?{self.chance.choice(QUERIES)}" if method == "GET" else ""
        return method, path + query, self.body(kind), "application/json"


@pytest.fixture
def client() -> Iterator[Client]:
    """Connect to a separate sandbox, so that leftovers of hostile requests do not disturb other tests."""
    with Sandbox(controllers=False) as sandbox:
        made = Client(sandbox.kubeconfig)
        yield made
        made.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_is_an_internal_error(client: Client, seed: int) -> None:
    """Wrong types, wrong places, wrong patches, on objects of all kinds."""
    client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("oddities", "Oddity"))
    odd = ResourceType("example.com", "v1", "oddities", "Oddity", "oddity", True, subresources=("scale", "status"))
    for name in "abc":
        client.post("/api/v1/namespaces/default/configmaps", config_map(name, {"x": "y"}))
        client.post("/api/v1/namespaces/default/pods", pod(name))
        client.post("/apis/apps/v1/namespaces/default/deployments", deployment(name))
        client.post("/apis/example.com/v1/namespaces/default/oddities", {**widget(name), "kind": "Oddity"})
    stranger = Stranger(seed, [*builtin_table("1.35"), *[odd] * 20])
    for _ in range(REQUESTS):
        method, path, body, kind = stranger.request()
        answer = client.send(method, path, json.dumps(body).encode(), kind)
        reason = answer.body.get("reason") if answer.status >= 500 and answer.data[:1] == b"{" else None
        assert reason != "InternalError", (method, path, body, answer.data)
    assert b"ok" == client.get("/healthz").data
