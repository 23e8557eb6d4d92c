"""An API server for tests: all parts are the real ones except clock and randomness."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from typing import Any, TypeVar

from kubesandbox.admission.chain import Admission
from kubesandbox.apiserver import ApiServer
from kubesandbox.authorization.access import MASTERS, EverythingAllowed
from kubesandbox.objects.managers import Managers
from kubesandbox.parsing.requests import WriteOptions
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage.store import Store
from kubesandbox.types.resources import ResourceType
from kubesandbox.writes import Write
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject

ADMIN = User("admin", groups=(MASTERS, "system:authenticated"))
T = TypeVar("T")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.moment += timedelta(seconds=seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(work)


def api_server(store: Store | None = None, *, clock: Clock | None = None, kube_version: str = "1.35") -> ApiServer:
    """Return a server with the namespace `default`."""
    clock = clock or Clock()
    schemas = ObjectSchemas(kube_version)
    numbers, letters = count(1), cycle("abcdefghijkl")

    def choose(_text: str) -> str:
        return next(letters)

    server = ApiServer(
        kube_version=kube_version,
        store=store or Store(),
        schemas=schemas,
        admission=lambda view: Admission(view, authorizer=EverythingAllowed(), waits_for_accounts=False),
        managers=lambda made: Managers(schemas.definitions, clock=clock, definition=made.definition_of),
        clock=clock,
        new_uid=lambda: f"uid-{next(numbers)}",
        choose=choose,
    )
    if not server.store.all("namespaces"):
        run(server.create(write(server, "namespaces", "", "default"), {"metadata": {"name": "default"}}))
        for number in range(1, 4):
            name = f"ns{number}"
            run(server.create(write(server, "namespaces", "", name), {"metadata": {"name": name}}))
    return server


def type_of(server: ApiServer, key: str) -> ResourceType:
    """Return the preferred version of what is stored under a key."""
    return server.table.versions_of(key)[0]


def write(
    server: ApiServer,
    key: str,
    namespace: str = "default",
    name: str = "",
    *,
    subresource: str = "",
    dry_run: bool = False,
    manager: str = "tests",
    validation: str = "",
    force: bool | None = None,
) -> Write:
    """Return a write by an administrator."""
    return Write(
        type=type_of(server, key),
        namespace=namespace,
        name=name,
        user=ADMIN,
        subresource=subresource,
        options=WriteOptions(dry_run, manager, validation, force),
        manager=manager,
    )


def config_map(name: str, data: dict[str, str] | None = None, **metadata: object) -> JSONObject:
    """Return a ConfigMap."""
    body: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return body if data is None else {**body, "data": data}


def pod(name: str, **spec: object) -> JSONObject:
    """Return a Pod with one container."""
    containers = [{"name": "main", "image": "nginx"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def deployment(name: str, replicas: int = 1) -> JSONObject:
    """Return a Deployment."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def definition(plural: str = "widgets", kind: str = "Widget", **version: object) -> JSONObject:
    """Return a CustomResourceDefinition with status and scale; objects have `spec.replicas` and `spec.color`."""
    replicas = {"replicas": {"type": "integer", "format": "int32"}}
    properties = {
        "spec": {"type": "object", "properties": {**replicas, "color": {"type": "string", "default": "grey"}}},
        "status": {"type": "object", "properties": {**replicas}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    **version,
                }
            ],
        },
    }


def widget(name: str, **spec: object) -> JSONObject:
    """Return an object of the definition above."""
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def names(bodies: Iterator[JSONObject]) -> list[str]:
    """Return the names of objects."""
    return [body["metadata"]["name"] for body in bodies]
