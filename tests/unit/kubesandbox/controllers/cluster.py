"""A server with all its controllers, in this process and without HTTP, whose time is moved by hand."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from types import TracebackType
from typing import Any, Self

from kubesandbox.admission.chain import Admission
from kubesandbox.apiserver import ApiServer
from kubesandbox.authentication.certificates import Authority
from kubesandbox.authorization.access import EverythingAllowed
from kubesandbox.controllers.controllerset import ControllerSet
from kubesandbox.controllers.registry import ControllerSettings
from kubesandbox.local import LocalClient
from kubesandbox.objects.allocation import Allocator
from kubesandbox.objects.managers import Managers
from kubesandbox.objects.patching import Patch
from kubesandbox.parsing.requests import APPLY_PATCH, WriteOptions
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage.store import Store
from kubesandbox.writes import Write
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject

START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
VERSION = "1.35"


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START
        self._calls: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def now(self) -> datetime:
        return self.time

    def later(self, seconds: float, call: Callable[[], None]) -> _Call:
        entry = (self.time + timedelta(seconds=seconds), next(self._count), call)
        self._calls.append(entry)
        return _Call(self._calls, entry)

    def move(self, seconds: float) -> None:
        """Let time pass and make the calls that fall due."""
        until = self.time + timedelta(seconds=seconds)
        while due := sorted(entry for entry in self._calls if entry[0] <= until):
            self.time = max(self.time, due[0][0])
            self._calls.remove(due[0])
            due[0][2]()
        self.time = until


class _Call:
    def __init__(self, calls: list[Any], entry: Any) -> None:
        self._calls, self._entry = calls, entry

    def cancel(self) -> None:
        if self._entry in self._calls:
            self._calls.remove(self._entry)


@cache
def _schemas() -> ObjectSchemas:
    return ObjectSchemas(VERSION, allocator=Allocator())


@cache
def authority() -> Authority:
    return Authority.make("test", now=START)


class Cluster:
    """The server, its controllers, and an administrator's client."""

    def __init__(self, *, kubelet: bool = True, kept_changes: int = 10_000) -> None:
        letters, numbers, schemas = random.Random(1), itertools.count(1), _schemas()  # noqa: S311  # repeatable names
        self.clock = HandClock()
        self.server = ApiServer(
            kube_version=VERSION,
            store=Store(kept_changes=kept_changes),
            schemas=schemas,
            admission=lambda view: Admission(
                view,
                authorizer=EverythingAllowed(),
                make_id=lambda: "id",
                make_suffix=lambda: "abcde",
                kube_version=VERSION,
            ),
            managers=lambda server: Managers(
                schemas.definitions, clock=self.clock.now, definition=server.definition_of
            ),
            clock=self.clock.now,
            new_uid=lambda: f"00000000-0000-4000-8000-{next(numbers):012d}",
            choose=letters.choice,
        )
        settings = ControllerSettings(
            kube_version=VERSION,
            certificate="the certificate",
            sign_token=lambda account, secret: f"token of {account['metadata']['name']} in {secret}",
            sign_request=lambda request, lifetime, usages: authority().sign(
                request, now=START, lifetime=lifetime, usages=usages
            ),
        )
        self.controllers = ControllerSet(settings, clock=self.clock, kubelet=kubelet)
        self.client = LocalClient(self.server, User("admin", ("system:masters",)))

    async def __aenter__(self) -> Self:
        for name in ("default", "kube-system", "kube-node-lease"):
            await self.client.create(
                "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
        await self.controllers.start(self.server)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.controllers.stop()

    async def settle(self, seconds: float = 0) -> None:
        """Let time pass, step by step, and wait until all controllers have nothing to do."""
        await self.controllers.settled()
        left = seconds
        while left > 0:
            step = min(left, max(seconds / 20, 1))
            self.clock.move(step)
            left -= step
            await self.controllers.settled()

    async def create(self, resource: str, body: JSONObject) -> JSONObject:
        """Create an object and wait until the controllers have followed."""
        created = await self.client.create(resource, body)
        await self.settle()
        return created

    async def apply(self, resource: str, body: JSONObject) -> JSONObject:
        """Apply an object (server-side apply) and wait until the controllers have followed."""
        metadata = body["metadata"]
        write = Write(
            self.server.table.versions_of(resource)[0],
            metadata.get("namespace") or "",
            metadata["name"],
            User("admin", ("system:masters",)),
            options=WriteOptions(field_manager="admin"),
        )
        applied = (await self.server.patch(write, Patch(APPLY_PATCH, body))).body
        await self.settle()
        return applied

    def names(self, resource: str, namespace: str = "default") -> list[str]:
        return [body["metadata"]["name"] for body in self.client.list(resource, namespace)]

    def get(self, resource: str, name: str, namespace: str = "default") -> JSONObject:
        found = self.client.get(resource, name, namespace)
        assert found is not None, f"{resource} {name} is not there: {self.names(resource, namespace)}"
        return found

    def events(self, reason: str, namespace: str = "default") -> list[str]:
        return [body["message"] for body in self.client.list("events", namespace) if body["reason"] == reason]


def in_cluster(
    scenario: Callable[[Cluster], Awaitable[None]] | None = None, *, kubelet: bool = True
) -> Callable[..., Any]:
    """Run a test as a coroutine in a cluster of its own."""

    def wrap(test: Callable[[Cluster], Awaitable[None]]) -> Callable[[], None]:
        async def run() -> None:
            async with asyncio.timeout(30), Cluster(kubelet=kubelet) as cluster:
                await test(cluster)

        def sync() -> None:
            asyncio.run(run())

        sync.__name__, sync.__doc__ = test.__name__, test.__doc__
        return sync

    return wrap(scenario) if scenario is not None else wrap


def pod_template(labels: dict[str, str], image: str = "nginx:1", **spec: Any) -> JSONObject:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def workload(kind: str, name: str, *, group: str = "apps/v1", **spec: Any) -> JSONObject:
    """Return a workload that selects `app: NAME`."""
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template({"app": name}),
            **spec,
        },
    }


def pod(name: str, **spec: Any) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}], **spec},
    }
