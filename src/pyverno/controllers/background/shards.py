"""Shares work between replicas: a lease for each shard, and replicas that have more shards than others give some away.

A shard is worked on only while its lease is held here. A replica that sees another with two more shards requests one of
them by an annotation on its lease; the holder stops working on that shard and gives the lease back. A request that a
new holder finds is dropped: the replica that made it may be gone, and repeats the request if it is not.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.leases import LeaderElection, LeaseTimes
from pyverno.controllers.runtime.leader import Runnable, log_faults
from pyverno.errors import HostError
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Shards", "shard_of", "shard_to_request"]

_LEASES: Final = GVR("coordination.k8s.io", "v1", "leases")
_REQUEST: Final = "pyverno.io/requested-by"
_BALANCE_SHARE: Final = 5
"""How often shares are compared, as a multiple of the period of retries."""

log = logging.getLogger("pyverno.background")


class Shards:
    """Runs one worker for each shard that this replica holds; `run` until cancelled, then `release`."""

    def __init__(
        self,
        client: Client,
        workers: Sequence[Runnable],
        *,
        name: str,
        namespace: str,
        identity: str,
        retry_seconds: float = 2.0,
    ) -> None:
        """Take a worker for each shard, the beginning of the leases' names, and the name of this replica."""
        self._client = client
        self._workers = tuple(workers)
        self._names = tuple(f"{name}-shard-{number}" for number in range(len(self._workers)))
        self._namespace = namespace
        self._identity = identity
        self._retry = retry_seconds
        self._times = LeaseTimes.of_retry(retry_seconds)
        self._elections = tuple(LeaderElection(client, each, namespace, identity, self._times) for each in self._names)
        for election in self._elections:
            log_faults(election)
        self._terms: dict[int, asyncio.Task[None]] = {}
        self._heeded: set[int] = set()
        """The shards whose requests were made while they were held here."""

    @property
    def held(self) -> tuple[int, ...]:
        """The shards that this replica works on."""
        return tuple(number for number, each in enumerate(self._elections) if each.is_leader)

    async def run(self) -> None:
        """Hold shards and work on them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(len(self._workers)):
                group.create_task(self._campaign(number))
            if len(self._workers) > 1:
                group.create_task(self._balance())

    async def release(self) -> None:
        """Give all leases back."""
        await asyncio.gather(*(each.release() for each in self._elections))

    async def _campaign(self, number: int) -> None:
        election, worker = self._elections[number], self._workers[number]
        while True:
            self._terms[number] = term = asyncio.create_task(election.run(worker.run))
            try:
                await asyncio.wait([term])
            finally:
                term.cancel()
                await asyncio.gather(term, return_exceptions=True)
            if not term.cancelled():
                term.result()  # a bug ends the controller
                await asyncio.sleep(self._retry)
                continue
            # the shard is given away: the replica that requested it goes first
            await election.release()
            await asyncio.sleep(self._times.duration + self._retry)

    async def _balance(self) -> None:
        """Ask for shards of replicas that have more, and give away what others ask for."""
        while True:
            await asyncio.sleep(self._retry * _BALANCE_SHARE)
            with suppress(HostError, StatusError):
                await self._compare(await self._leases())

    async def _leases(self) -> dict[int, JSONObject]:
        found: dict[int, JSONObject] = {}
        for number, name in enumerate(self._names):
            with suppress(StatusError):  # a lease that does not exist yet
                found[number] = await self._client.get(_LEASES, name, self._namespace)
        return found

    async def _compare(self, leases: Mapping[int, JSONObject]) -> None:
        holders = {number: _holder(lease) for number, lease in leases.items()}
        held = self.held
        self._heeded &= {*held}
        for number in held:
            asking = _requested_by(leases.get(number, {}))
            if asking:
                await self._annotate(number, None)
            if number not in self._heeded:
                self._heeded.add(number)  # callers of the previous holder may have ended with it
                continue
            if not asking:
                continue
            counts = Counter(holders.values())
            if asking != self._identity and counts[self._identity] > counts[asking] + 1:
                log.info("a shard is given to another replica", extra={"fields": {"shard": number, "to": asking}})
                self._terms[number].cancel()
                return
        wanted = shard_to_request(holders, self._identity)
        if wanted is not None and not _requested_by(leases[wanted]):
            await self._annotate(wanted, self._identity)

    async def _annotate(self, number: int, value: str | None) -> None:
        body: JSONObject = {"metadata": {"annotations": {_REQUEST: value}}}
        await self._client.patch(_LEASES, self._names[number], body, self._namespace)


def shard_of(policy: str, trigger: JSONObject, shards: int) -> int:
    """Return the shard of a policy (`name` or `namespace/name`) and a trigger, as an object reference."""
    parts = [str(trigger.get(name) or "") for name in ("apiVersion", "kind", "namespace", "name")]
    return zlib.crc32("\0".join((policy, *parts)).encode()) % shards


def shard_to_request(holders: Mapping[int, str], identity: str) -> int | None:
    """Return a shard of the replica with the most, if that one has at least two more than this one.

    >>> shard_to_request({0: "a", 1: "a", 2: "b"}, "b"), shard_to_request({0: "a", 1: "a"}, "b")
    (None, 0)
    """
    counts = Counter(holder for holder in holders.values() if holder)
    if not counts:
        return None
    busiest, count = counts.most_common(1)[0]
    if busiest == identity or count < counts[identity] + 2:
        return None
    return min(number for number, holder in holders.items() if holder == busiest)


def _holder(lease: JSONObject) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _requested_by(lease: JSONObject) -> str:
    return str(((lease.get("metadata") or {}).get("annotations") or {}).get(_REQUEST) or "")
