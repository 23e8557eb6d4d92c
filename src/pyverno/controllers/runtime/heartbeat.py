"""The heartbeat of the leader: a lease that is updated every few seconds and whose age shows the webhooks' health.

Each update makes the API server call our mutating webhook, which records its own time in the lease. Leader election
uses a different lease.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.leases import LEASES
from pyverno.controllers.runtime.reconcile import Again, Controller, LoopMetrics, LoopSettings
from pyverno.controllers.runtime.workqueue import Backoff
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.webhook.heartbeat import HEALTH_LEASE, LAST_REQUEST

__all__ = ["Heartbeat"]

_BEAT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 100.0
_LABELS: Final = {"app.kubernetes.io/name": "kyverno"}
_START_LEASE: Final = "kyvernopre-lock"


class Heartbeat:
    """Updates the lease and checks its age."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        seconds: float = _BEAT_SECONDS,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take the client and the namespace of the lease; `now` is the wall clock."""
        self._client = client
        self._namespace = namespace
        self._seconds = seconds
        self._now = now

    def controller(self, notify: Callable[[], None], metrics: LoopMetrics | None = None) -> Controller[str]:
        """Return a controller that updates the lease periodically; `notify` is called after each attempt."""

        async def reconcile(_key: str) -> Again:
            try:
                await self.beat()
            finally:
                notify()
            return Again(self._seconds)

        settings = LoopSettings(backoff=Backoff(first=min(self._seconds, 1.0), longest=self._seconds))
        return Controller(
            "heartbeat-controller", reconcile, keys=lambda: (HEALTH_LEASE,), settings=settings, metrics=metrics
        )

    async def beat(self) -> None:
        """Write the lease once. Raises StatusError and HostError."""
        annotations = {LAST_REQUEST: self._now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        lease = await self._find()
        if lease is None:
            metadata = {"name": HEALTH_LEASE, "namespace": self._namespace, "labels": _LABELS}
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {**metadata, "annotations": annotations},
            }
            await self._client.create(LEASES, body, self._namespace)
            return
        lease["metadata"] = {**lease["metadata"], "labels": _LABELS, "annotations": annotations}
        await self._client.update(LEASES, lease, self._namespace)

    async def problem(self) -> str:
        """Return why the webhooks are not known to work, "" while the lease is recent. Raises as `beat`."""
        lease = await self._find()
        said = ((lease or {}).get("metadata") or {}).get("annotations") or {}
        try:
            last = datetime.strptime(str(said.get(LAST_REQUEST, "")), "%Y-%m-%dT%H:%M:%S%z")
        except ValueError:
            return f"the lease {HEALTH_LEASE} has no valid time"
        age = (self._now() - last).total_seconds()
        return "" if age < _IDLE_SECONDS else f"the lease {HEALTH_LEASE} is {age:.0f} seconds old"

    async def remove(self) -> None:
        """Delete the lease, and that of Kyverno's init container. Raises StatusError and HostError."""
        for name in (_START_LEASE, HEALTH_LEASE):
            try:
                await self._client.delete(LEASES, name, self._namespace)
            except StatusError as error:
                if error.status != 404:
                    raise

    async def _find(self) -> JSONObject | None:
        try:
            return await self._client.get(LEASES, HEALTH_LEASE, self._namespace)
        except StatusError as error:
            if error.status != 404:
                raise
            return None
