"""A cluster with the admission and the background controller, in an event loop of its own thread, for several tests.

with background_cluster() as cluster:
    cluster.apply(text)                   # creates or replaces objects; policies are in force when it returns
    cluster.until("v1", "ConfigMap", "team/a", lambda body: ...)
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from kubesandbox.sandbox import Sandbox, Settings
from pyverno.cluster.access import load_kubeconfig
from pyverno.cluster.client import Client
from pyverno.controllers.admission.settings import AdmissionSettings
from pyverno.kube.gvk import GVK, parse_api_version
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.kube.status import StatusError
from pyverno.kube.yaml.documents import expand_lists, load_documents
from pyverno.loopthread import LoopThread
from pyverno.policy.kinds import KNOWN_KINDS, is_policy
from pyverno.policy.updaterequest import UPDATE_REQUESTS
from pyverno.telemetry.observer import Observers
from pyverno.testing import BACKGROUND, FurtherController, PolicySandbox
from pyverno.webhook.policyreviews import ExceptionSettings
from tests.support.loops import entered

__all__ = ["BackgroundCluster", "background_cluster"]

T = TypeVar("T")
_SECONDS = 60.0
_POLL = 0.02


class BackgroundCluster:
    """The running cluster for its administrator; all methods block."""

    def __init__(self, thread: LoopThread, cluster: PolicySandbox, client: Client) -> None:
        self._thread = thread
        self.cluster = cluster
        self.client = client

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the cluster's event loop and wait for its result."""
        return self._thread.run(work, 300)

    def apply(self, text: str) -> None:
        """Create or replace objects; policies among them are in force afterwards."""
        bodies = [found.value for found in expand_lists(load_documents(text, file="test.yaml"))]
        for body in bodies:
            info, namespace = self._place(body)
            try:
                self.run(self.client.create(info.gvr, body, namespace))
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                current = self.run(self.client.get(info.gvr, body["metadata"]["name"], namespace))
                version = current["metadata"]["resourceVersion"]
                changed = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
                self.run(self.client.update(info.gvr, changed, namespace))
        if any(is_policy(body) for body in bodies):
            self.run(self.cluster.settle())

    def get(self, api_version: str, kind: str, key: str) -> JSONObject | None:
        """Return the object `namespace/name` or `name`, None when there is none."""
        namespace, _, name = key.rpartition("/")
        try:
            return self.run(self.client.get(self._info(api_version, kind).gvr, name, namespace))
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    def delete(self, api_version: str, kind: str, key: str) -> None:
        """Delete an object."""
        namespace, _, name = key.rpartition("/")
        self.run(self.client.delete(self._info(api_version, kind).gvr, name, namespace))

    def until(
        self, api_version: str, kind: str, key: str, holds: Callable[[JSONObject], object], *, why: str = ""
    ) -> JSONObject:
        """Wait until an object exists and satisfies a condition, and return it."""
        return self.wait_for(lambda: (body := self.get(api_version, kind, key)) and holds(body) and body, f"{why}{key}")

    def wait_for(self, ask: Callable[[], T | None], what: str = "") -> T:
        """Wait until the callable returns a true value, and return it."""
        end = time.monotonic() + _SECONDS
        while True:
            found = ask()
            if found:
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {_SECONDS:g} seconds; requests: {self.requests()}")
            time.sleep(_POLL)

    def requests(self) -> list[JSONObject]:
        """Return the UpdateRequests."""
        listed = self.run(self.client.list(UPDATE_REQUESTS, "kyverno"))
        return [
            {"name": each["metadata"]["name"], **each["spec"], **(each.get("status") or {})} for each in listed["items"]
        ]

    def no_requests(self) -> None:
        """Wait until every UpdateRequest is completed."""
        self.wait_for(lambda: not self.requests() or None, "all requests are done")

    def events(self, namespace: str = "default") -> list[JSONObject]:
        """Return the events of a namespace."""
        return self.list("events.k8s.io/v1", "Event", namespace)

    def list(self, api_version: str, kind: str, namespace: str = "") -> list[JSONObject]:
        """Return the objects of a kind."""
        info = self._info(api_version, kind)
        items: list[JSONObject] = self.run(self.client.list(info.gvr, namespace))["items"]
        return items

    def _place(self, body: JSONObject) -> tuple[KindInfo, str]:
        info = self._info(body["apiVersion"], body["kind"])
        return info, (body["metadata"].get("namespace") or "default") if info.namespaced else ""

    @staticmethod
    def _info(api_version: str, kind: str) -> KindInfo:
        found = KNOWN_KINDS.find(GVK(*parse_api_version(api_version), kind))
        assert found is not None, f"{api_version} {kind}"
        return found


@contextmanager
def background_cluster(
    *, further: Sequence[FurtherController] = (BACKGROUND,), **settings: Any
) -> Iterator[BackgroundCluster]:
    """Run a cluster with further controllers; `settings` are those of the admission controller."""
    exceptions = ExceptionSettings(enabled=True, namespace="*")
    admission = AdmissionSettings(**{"exceptions": exceptions, "qps": 0, "lease_retry": 60, **settings})
    sandbox = Sandbox(Settings(kubelet=False))

    @asynccontextmanager
    async def run() -> AsyncIterator[tuple[PolicySandbox, Client]]:
        async with (
            PolicySandbox(sandbox, Observers(), admission, further=further) as cluster,
            Client(load_kubeconfig(sandbox.kubeconfig, environment={}), qps=0) as client,
        ):
            yield cluster, client

    with LoopThread("cluster") as thread, entered(thread, run()) as (cluster, client):
        yield BackgroundCluster(thread, cluster, client)
