"""Leader election by a Lease: of several replicas one works, and it stops before its lease could be another's.

Time is measured by the monotonic clock of this machine only; times that other clocks write into the lease are only
compared with each other. This module must never let two holders work at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from pyverno.cluster.client import Client
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.value import dataclass

__all__ = ["LeaderElection", "LeaseTimes"]

LEASES = GVR("coordination.k8s.io", "v1", "leases")
_LONGEST_SHARE = 10
"""How many times our own duration the lease of another may last: what it says may be anything."""

_MAX_TRANSITIONS = 2**31 - 1

log = logging.getLogger("pyverno.cluster")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds that a lease lasts, until its holder stops working without renewal, and between attempts to renew."""

    duration: float = 12.0
    renew: float = 10.0
    retry: float = 2.0

    @classmethod
    def of_retry(cls, retry: float) -> LeaseTimes:
        """Return Kyverno's proportions: the lease six times, the deadline five times the period of retries."""
        return cls(6 * retry, 5 * retry, retry)


class LeaderElection:
    """Runs some work while, and only while, this process holds a lease."""

    def __init__(
        self, client: Client, name: str, namespace: str, identity: str, times: LeaseTimes | None = None
    ) -> None:
        """Take the lease's name and the holder's `identity`, which must differ between replicas."""
        self._client = client
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._times = times or LeaseTimes()
        self._seen: tuple[object, float] = (None, 0.0)
        self._on_try: Callable[[str], None] = lambda reason: None
        self.is_leader = False

    def __str__(self) -> str:
        """Return namespace and name of the lease."""
        return f"{self._namespace}/{self._name}"

    def report(self, on_try: Callable[[str], None]) -> None:
        """Call a function after each try, with the reason why the API server could not be asked, "" without one.

        That another process holds the lease, or was faster, is no such reason.
        """
        self._on_try = on_try

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, work, and return when the work has ended or the lease is lost; work is then cancelled."""
        until = await self._acquire()
        self.is_leader = True
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew(until))
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.is_leader = False
            for task in (working, renewing):
                task.cancel()
            results = await asyncio.gather(working, renewing, return_exceptions=True)
        if isinstance(results[1], Exception):  # the lease is lost, and taken again
            log.error("the renewal of a lease ran into a bug", exc_info=results[1])
        if isinstance(results[0], Exception):
            raise results[0]

    async def release(self) -> None:
        """Give the lease back, so that another replica need not wait for its end."""
        try:
            lease = await self._read()
            if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                lease["spec"] = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._client.update(LEASES, lease, self._namespace, is_urgent=True)
        except (StatusError, HostError):
            return  # it ends by itself

    async def _acquire(self) -> float:
        """Wait until the lease is ours; return until when we may work without renewing it."""
        while True:
            began = time.monotonic()
            # counted from before the write: the server may have stored it long before its response arrived
            if await self._try() and time.monotonic() < began + self._times.renew:
                return began + self._times.renew
            await asyncio.sleep(self._times.retry)

    async def _renew(self, until: float) -> None:
        """Renew until that has failed for too long; return before the lease could be another's."""
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(self._times.retry, left))
            began = time.monotonic()
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(until - began, 0)):
                    if await self._try():
                        until = began + self._times.renew
                    elif self._seen[0] is not None:
                        return  # it is another's now
            except TimeoutError:
                return

    async def _try(self) -> bool:
        """Take or renew the lease; return whether this process holds it."""
        try:
            lease = await self._read()
        except StatusError as error:
            if error.status == 404:
                return await self._create()
            self._on_try(error.message)
            return False
        except HostError as error:
            self._on_try(error.message)
            return False
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._identity) and not self._has_ended(spec):
            self._on_try("")
            return False
        changed = holder != self._identity
        transitions = int(spec.get("leaseTransitions") or 0) + changed
        if transitions > _MAX_TRANSITIONS:
            transitions = 0  # the API server refuses larger numbers: no replica could take the lease again
        body = {**lease, "spec": self._spec(transitions, None if changed else spec.get("acquireTime"))}
        return await self._write(self._client.update(LEASES, body, self._namespace, is_urgent=True))

    def _has_ended(self, spec: JSONObject) -> bool:
        """Return whether another's lease has not been renewed for as long as it lasts, seen from here."""
        record = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if self._seen[0] != record:
            self._seen = (record, time.monotonic())
            return False
        duration = float(spec.get("leaseDurationSeconds") or self._times.duration)
        return time.monotonic() - self._seen[1] > min(duration, self._times.duration * _LONGEST_SHARE)

    async def _create(self) -> bool:
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": self._spec(0, None),
        }
        return await self._write(self._client.create(LEASES, body, self._namespace, is_urgent=True))

    async def _read(self) -> JSONObject:
        # urgent, as the writes are: what keeps the lease must not wait behind the work that depends on it
        return await self._client.get(LEASES, self._name, self._namespace, is_urgent=True)

    async def _write(self, writing: Awaitable[JSONObject]) -> bool:
        try:
            await writing
        except (StatusError, HostError) as error:
            self._on_try("" if isinstance(error, StatusError) and error.status == 409 else error.message)
            return False
        self._on_try("")
        self._seen = (None, 0.0)
        return True

    def _spec(self, transitions: int, acquired: object) -> JSONObject:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(round(self._times.duration), 1),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
