"""Fills the store: once from files, or by following the reports of a cluster.

Changes of a cluster are collected for a moment and written together: a rescan of a whole cluster is a few transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.report.collected import Collected
from pyverno.threads import in_thread
from pyverno.ui.live import LiveUpdates
from pyverno.ui.store.database import StoreUnavailableError
from pyverno.ui.store.writer import Change, Report, Writer, report_of

__all__ = ["FILES", "REPORT_KINDS", "ClusterFeed", "StoreFeed"]

FILES: Final = "files"
"""The cluster name of results from files."""

REPORT_KINDS: Final = (
    ("PolicyReport", GVR("wgpolicyk8s.io", "v1alpha2", "policyreports")),
    ("ClusterPolicyReport", GVR("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports")),
    ("Report", GVR("openreports.io", "v1alpha1", "reports")),
    ("ClusterReport", GVR("openreports.io", "v1alpha1", "clusterreports")),
)
_NOT_FOUND: Final = 404
_GATHER_SECONDS: Final = 0.5
_SYNC_SECONDS: Final = 60.0
_DAY: Final = 86_400
_MOST_REPORTS: Final = 500
"""Reports of one transaction; between transactions, readers and the event loop continue."""

Subscriber = Callable[[Sequence[Change]], Awaitable[None]]


class StoreFeed:
    """Writes to the store, in a thread, one batch at a time, and notifies pages and subscribers of changes."""

    def __init__(self, writer: Writer, live: LiveUpdates, *, now: Callable[[], float] = time.time) -> None:
        """Take the one writer of the store; `now` returns seconds since 1970."""
        self._writer = writer
        self._live = live
        self._now = now
        self._turn = asyncio.Lock()
        self.subscribers: list[Subscriber] = []

    async def write(self, reports: Sequence[Report]) -> None:
        """Write reports as they are now."""
        for start in range(0, len(reports), _MOST_REPORTS):
            part = reports[start : start + _MOST_REPORTS]
            await self._run(lambda now, part=part: self._writer.write(part, now))  # type: ignore[misc]

    async def remove(self, cluster: str, names: Sequence[str]) -> None:
        """Resolve the results of deleted reports."""
        await self._run(lambda now: self._writer.remove(cluster, names, now))

    async def keep_only(self, cluster: str, names: set[str]) -> None:
        """Resolve the results of every report of a cluster that is not among `names`."""
        await self._run(lambda now: self._writer.keep_only(cluster, names, now))

    async def write_files(self, results: Iterable[Collected]) -> None:
        """Write the results of files, in place of those of earlier files."""
        await self.write([Report(FILES, FILES, tuple(results), {})])

    async def keep_days(self) -> None:
        """Record the counts of each day shortly before it ends, and soon after the start; until cancelled."""
        pause = _SYNC_SECONDS
        while True:
            await asyncio.sleep(pause)
            await self._run(self._end_day)
            left = _DAY - int(self._now()) % _DAY
            pause = left - _SYNC_SECONDS if left > 2 * _SYNC_SECONDS else left + _DAY - _SYNC_SECONDS

    def _end_day(self, now: int) -> list[Change]:
        self._writer.end_day(now)
        return []

    def _work(self, work: Callable[[int], list[Change]]) -> tuple[list[Change], bool]:
        """Write, and announce what changed; raises StoreUnavailableError."""
        try:
            changes = work(int(self._now()))
            return changes, self._writer.announce(changes)
        except self._writer.failures as error:
            raise StoreUnavailableError(f"the store cannot be written: {error}") from error

    async def _run(self, work: Callable[[int], list[Change]]) -> None:
        async with self._turn:
            changes, is_announced = await in_thread(self._work, work)
        if not is_announced:
            self._live.publish(changes)
        for subscriber in self.subscribers if changes else ():
            await subscriber(changes)


class ClusterFeed:
    """Follows the reports of one cluster until cancelled."""

    def __init__(self, name: str, client: Client, feed: StoreFeed, namespaces: Sequence[str] = ()) -> None:
        """Take the name of the cluster for its results; without `namespaces` all are followed."""
        self.name = name
        self._client = client
        self._feed = feed
        self._namespaces = tuple(namespaces)
        self._written: dict[str, JSONObject] = {}
        self._deleted: set[str] = set()
        self._woken = asyncio.Event()
        self._informers: list[Informer] = []
        self.problems: tuple[str, ...] = ()

    def problem(self) -> str:
        """Return why the results of this cluster may be out of date; "" while they are current."""
        found = [text for informer in self._informers if (text := informer.problem())]
        return "; ".join((*self.problems, *found))

    async def run(self) -> None:
        """Follow the cluster; kinds of reports that it does not serve are left out."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            stack.callback(self._informers.clear)
            while not (served := await self._list_served()):
                await asyncio.sleep(_SYNC_SECONDS)
            for kind, gvr in served:
                for namespace in self._namespaces or ("",):
                    informer = Informer(self._client, gvr, namespace=namespace)
                    informer.listen(lambda notice, body, kind=kind: self._take(notice, {**body, "kind": kind}))  # type: ignore[misc]
                    self._informers.append(informer)
                    tasks.create_task(informer.run())
            await self._write_forever()

    async def _list_served(self) -> list[tuple[str, GVR]]:
        """Return the kinds of reports that can be listed; raises HostError when the cluster does not answer."""
        served, problems = [], []
        for kind, gvr in REPORT_KINDS:
            if self._namespaces and kind.startswith("Cluster"):
                continue
            try:
                path = resource_path(gvr, self._namespaces[0] if self._namespaces else "")
                await self._client.request("GET", path, query=[("limit", "1")])
            except StatusError as error:
                if error.status != _NOT_FOUND:
                    problems.append(f"{gvr.resource} cannot be read: {error.message}")
                continue
            served.append((kind, gvr))
        if not served and not problems:
            problems.append("the cluster serves no reports: install a reports controller")
        self.problems = tuple(problems)
        return served

    def _take(self, notice: Notice, body: JSONObject) -> None:
        name = report_of(self.name, {**body, "results": []}).name
        if notice is Notice.DELETED:
            self._written.pop(name, None)
            self._deleted.add(name)
        else:
            self._deleted.discard(name)
            self._written[name] = body
        self._woken.set()

    async def _write_forever(self) -> None:
        known: set[str] = set()
        is_whole = False
        while True:
            try:
                async with asyncio.timeout(_SYNC_SECONDS):
                    await self._woken.wait()
                await asyncio.sleep(_GATHER_SECONDS)
            except TimeoutError:
                pass
            self._woken.clear()
            is_synced = bool(self._informers) and all(each.synced.is_set() for each in self._informers)
            written, self._written = self._written, {}
            deleted, self._deleted = self._deleted, set()
            known = (known | set(written)) - deleted
            await self._feed.write([report_of(self.name, body) for body in written.values()])
            if deleted:
                await self._feed.remove(self.name, sorted(deleted))
            if is_synced and not is_whole:
                # reports may have been deleted while this server did not run
                is_whole = True
                await self._feed.keep_only(self.name, known)
