"""The watches of objects with a time to live: an informer for each kind, which keeps what decides their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.kinds import KindInfo
from pyverno.webhook.cleanupreviews import TTL_LABEL

__all__ = ["PROPAGATION", "TtlWatches", "shrink"]

PROPAGATION: Final = "cleanup.kyverno.io/propagation-policy"
"""On an object with a time to live: how its dependents are treated."""

_BOUND_SECONDS: Final = 300.0
"""How old metadata may be: a deletion names the version that it is meant for, so an old one deletes nothing."""

_WAIT_SECONDS: Final = 1.0
_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_KEPT_LABELS: Final = (TTL_LABEL, "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by")

Take = Callable[[int, Notice, JSONObject], None]


def shrink(body: JSONObject) -> JSONObject:
    """Return of an object what decides when it is deleted, and whether.

    >>> shrink({"kind": "PartialObjectMetadata", "metadata": {"name": "a", "labels": {"app": "web"}}})
    {'metadata': {'name': 'a'}}
    """
    metadata = body.get("metadata") or {}
    kept: JSONObject = {key: metadata[key] for key in _KEPT if metadata.get(key)}
    for part, names in (("labels", _KEPT_LABELS), ("annotations", (PROPAGATION,))):
        found = metadata.get(part) or {}
        few = {name: found[name] for name in names if name in found}
        if few:
            kept[part] = few
    return {"metadata": kept}


class TtlWatches:
    """Runs the informers of kinds; a kind is called by its number, which it keeps."""

    def __init__(self, client: Client, take: Take) -> None:
        """Take the client, and the receiver of changes."""
        self._client = client
        self._take = take
        self._numbers: dict[GVR, int] = {}
        self._kinds: list[KindInfo] = []
        self._informers: dict[int, Informer] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @property
    def are_synced(self) -> bool:
        """Return whether each informer has brought everything."""
        return all(each.synced.is_set() for each in self._informers.values())

    @property
    def watched(self) -> list[KindInfo]:
        """The kinds that are watched."""
        return [self._kinds[number] for number in self._informers]

    def kind(self, number: int) -> KindInfo:
        """Return the kind behind a number, watched or not."""
        return self._kinds[number]

    def get(self, number: int, name: str, namespace: str) -> JSONObject | None:
        """Return the entry of an object, None when it is deleted or not watched."""
        informer = self._informers.get(number)
        return None if informer is None else informer.get(name, namespace)

    async def follow(self, wanted: Iterable[KindInfo]) -> frozenset[int]:
        """Watch these kinds and no others; returns the numbers of those that were left.

        Watches are opened one after the other: a hundred at once would keep the lease from being renewed.
        """
        numbers = {self._number(info) for info in wanted}
        gone = frozenset(self._informers.keys() - numbers)
        await self._leave(gone)
        for number in sorted(numbers - self._informers.keys()):
            informer = Informer(
                self._client,
                self._kinds[number].gvr,
                selector=TTL_LABEL,
                bound=_BOUND_SECONDS,
                shrink=shrink,
                only_metadata=True,
                on_restore=partial(self._take_all, number),
            )
            informer.listen(partial(self._take, number))
            self._informers[number] = informer
            self._tasks[number] = asyncio.create_task(informer.run())
            await _wait_for(informer)
        return gone

    def _take_all(self, number: int) -> None:
        """Look at all objects of a kind: in a cluster restored from a backup those are back that were deleted."""
        for body in self._informers[number].all():
            self._take(number, Notice.MODIFIED, body)

    async def end(self) -> None:
        """Stop watching."""
        await self._leave(frozenset(self._informers))

    async def _leave(self, numbers: frozenset[int]) -> None:
        tasks = [self._tasks.pop(number) for number in numbers]
        for number in numbers:
            del self._informers[number]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _number(self, info: KindInfo) -> int:
        if info.gvr not in self._numbers:
            self._numbers[info.gvr] = len(self._kinds)
            self._kinds.append(info)
        return self._numbers[info.gvr]


async def _wait_for(informer: Informer) -> None:
    """Wait until an informer has brought everything, but not long: one that cannot must not keep others waiting."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_WAIT_SECONDS):
            await informer.synced.wait()
