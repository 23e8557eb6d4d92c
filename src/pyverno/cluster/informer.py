"""A cache of one resource that follows the cluster: list once, watch from there, list again when that breaks.

A watch is short, because an API server sends a bookmark shortly before it ends one: a watch that ends or idles without
a line proves nothing, and the cache lists again. The cache is therefore never older than its bound without `is_stale`.
Objects are kept as bytes and decoded on use: a cache of dicts would take five times the memory and slow garbage
collection down. All methods belong to the event loop's thread but `get` and `all`, which may be called
from any. This module must never drop a change silently: listeners get changes that a broken watch missed after the
new list.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

import orjson

from pyverno.cluster.client import JSON_TYPE, METADATA, METADATA_LIST, Client
from pyverno.errors import HostError
from pyverno.kube.apipath import resource_path
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["STALE_SECONDS", "Informer", "Notice", "newest", "slim"]

_CHANCE: Final = random.SystemRandom()
log = logging.getLogger("pyverno.cluster")

STALE_SECONDS: Final = 30.0
"""The age at which a cache is stale (security.md, R8)."""

_WATCH_SHARE: Final = (0.5, 0.65)
_IDLE_SHARE: Final = 0.8
_LASTING_SHARE: Final = 0.25
"""The length of a watch, its longest silence, and the age from which its end is no failure, as shares of the bound."""

_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0
_MAX_FAULTY: Final = 1000
"""Objects whose last change is kept because a listener ran into a bug."""

_LATER: Final = (401, 403, 429, 503)
"""Refusals that do not concern the requested version."""

_SLICE: Final = 50
"""Objects of a list that are taken in before other tasks run."""

Place = tuple[str, str]


class Notice(StrEnum):
    """The kind of a change of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


Listener = Callable[[Notice, JSONObject], None]
Prepare = Callable[[JSONObject], Awaitable[None]]


def slim(body: JSONObject) -> JSONObject:
    """Return an object without the record of its field managers, which is often half of it.

    >>> slim({"metadata": {"name": "a", "managedFields": []}})
    {'metadata': {'name': 'a'}}
    """
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return body
    return {**body, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def newest(revisions: Iterable[str]) -> str:
    """Return the newest of some resource versions; "" stands for an unknown one.

    >>> newest(["9", "", "10"]), newest([])
    ('10', '')
    """
    return max(revisions, key=lambda text: int(text or 0), default="")


class Informer:
    """The objects of a resource, in one namespace or all, by label selector or all."""

    def __init__(
        self,
        client: Client,
        gvr: GVR,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        bound: float = STALE_SECONDS,
        shrink: Callable[[JSONObject], JSONObject] = slim,
        only_metadata: bool = False,
        on_restore: Callable[[], None] = lambda: None,
        prepare: Prepare | None = None,
    ) -> None:
        """Take the resource to watch; no request is sent before `run`.

        `fields` is a field selector; `shrink` reduces an object to what is kept. With `only_metadata` the server sends
        only metadata. After `bound` seconds without proof the cache is stale. `on_restore` is called before the changes
        of a list whose version is lower than one that was seen: the cluster was restored from a backup. `prepare` is
        awaited before an object is added or changed, so that listeners have little to do; the next change waits for it.
        """
        self.gvr = gvr
        self.synced = asyncio.Event()
        self._client = client
        self._namespace = namespace
        self._query = {name: text for name, text in (("labelSelector", selector), ("fieldSelector", fields)) if text}
        self._bound = bound
        self._shrink = shrink
        self._accept = (METADATA_LIST, METADATA) if only_metadata else (JSON_TYPE, JSON_TYPE)
        self._objects: dict[Place, bytes] = {}
        self._listeners: list[Listener] = []
        self._faulty: dict[Place, tuple[Notice, JSONObject, Sequence[Listener]]] = {}
        self._version = ""
        self._latest = 0
        self._on_restore = on_restore
        self._prepare = prepare
        self._heard = time.monotonic()
        self._broken_since: float | None = self._heard
        self._is_silent = False
        self._opened = 0.0
        self._woken = asyncio.Event()
        self.trouble = ""
        """The reason why the cluster is not followed now, as far as it is known."""

    def listen(self, listener: Listener) -> None:
        """Call a listener for every change from now on; one that raises is a bug, and gets the change again later.

        The others get it at once, and all go on: an object that a listener cannot take must not end the whole process,
        again and again. The client counts the fault, and `problem` names it until the object is taken.
        """
        self._listeners.append(listener)

    def get(self, name: str, namespace: str = "") -> JSONObject | None:
        """Return an object, None for a missing one."""
        found = self._objects.get((namespace, name))
        return None if found is None else orjson.loads(found)

    def has(self, name: str, namespace: str = "") -> bool:
        """Return whether an object exists, for a fraction of the cost of `get`."""
        return (namespace, name) in self._objects

    def all(self, namespace: str = "") -> Iterator[JSONObject]:
        """Yield the objects of a namespace, or all, in order of their names."""
        for place, body in sorted(self._objects.items()):
            if namespace in ("", place[0]):
                yield orjson.loads(body)

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def revision(self) -> str:
        """The newest resource version that was seen, "" before the first list or where versions are no numbers."""
        return str(self._latest) if self._latest else ""

    @property
    def stale_seconds(self) -> float:
        """The seconds since the cache last followed the cluster; 0 while it does."""
        return 0.0 if self._broken_since is None else time.monotonic() - self._broken_since

    @property
    def is_stale(self) -> bool:
        """Return whether the cache has not followed the cluster for longer than its bound."""
        return self.stale_seconds > self._bound

    def problem(self) -> str:
        """Return why the objects cannot be relied on; the empty text while they can."""
        if not self.synced.is_set():
            reason = "are not known yet"
        elif self.is_stale:
            reason = f"have not been refreshed for more than {self._bound:g} seconds"
        elif self._faulty:
            return f"{self.gvr.resource} include {len(self._faulty)} that ran into a bug; see the log"
        else:
            return ""
        return f"{self.gvr.resource} {reason}{f': {self.trouble}' if self.trouble else ''}"

    def wake(self) -> None:
        """Try again at once if the cluster is not followed: something has changed that may have been the reason."""
        if self._broken_since is not None:
            self._woken.set()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            self._is_silent, self._opened = False, 0.0
            try:
                if not self._version or self.is_stale:
                    await self._list()  # an open watch would end the staleness before it delivers the missed changes
                await self._watch()
                if self._is_silent:
                    self._break("the watch ended without a word")
                else:
                    pause = _FIRST_PAUSE
            except StatusError as error:
                self._break(error.message)
                # usually 410; but a server that lost its data may answer otherwise to a version that it never gave
                if error.status not in _LATER:
                    self._version = ""
            except HostError as error:
                self._break(error.message)
            except Exception:
                # an aggregated API or a proxy may send anything: what cannot be read ends no process
                self._break("the server sent something that cannot be read")
                self._version = ""
                log.exception("a watch ran into a bug", extra={"fields": {"resource": self.gvr.resource}})
            self._deliver_again()
            now = time.monotonic()
            if self._is_silent or (self._opened and now - self._heard >= self._idle_seconds):
                self._version = ""
            if self._opened and now - self._opened >= self._bound * _LASTING_SHARE:
                pause = _FIRST_PAUSE
                continue  # it worked for a while, and the bound may be near
            with suppress(TimeoutError):
                async with asyncio.timeout(pause * _CHANCE.uniform(0.5, 1.5)):
                    await self._woken.wait()
            self._woken.clear()
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _open(self) -> None:
        self._is_silent = True
        self._mend()
        self._opened = self._heard

    def _mend(self) -> None:
        self._heard = time.monotonic()
        self._broken_since = None
        self.trouble = ""

    def _break(self, trouble: str) -> None:
        self.trouble = trouble
        if self._broken_since is None:
            now = time.monotonic()
            self._broken_since = self._heard if now - self._heard >= self._idle_seconds else now

    @property
    def _idle_seconds(self) -> float:
        return self._bound * _IDLE_SHARE

    async def _list(self) -> None:
        try:
            async with asyncio.timeout(self._bound):
                found = await self._client.list(self.gvr, self._namespace, query=self._query, accept=self._accept[0])
        except TimeoutError:
            raise HostError(f"the list did not come within {self._bound:g} seconds") from None
        kind = str(found.get("kind", "")).removesuffix("List")
        notices: list[tuple[Notice, JSONObject]] = []
        before, after = dict(self._objects), {}
        for number, item in enumerate(found["items"], 1):
            if number % _SLICE == 0:
                await asyncio.sleep(0)
            # items of a list leave out kind and version, which the list has
            body = self._shrink({"apiVersion": found.get("apiVersion"), "kind": kind, **item})
            place = _place(body)
            after[place] = _pack(body)
            old = before.pop(place, None)
            if old is None:
                notices.append((Notice.ADDED, body))
            elif old != after[place]:
                notices.append((Notice.MODIFIED, body))
        for _, body in notices:
            await self._be_prepared(body)
        notices.extend((Notice.DELETED, orjson.loads(gone)) for gone in before.values())
        self._objects = after  # in one step: other threads read it, and must not see a half of it
        self._version = str((found.get("metadata") or {}).get("resourceVersion") or "")
        number = int(self._version) if self._version.isdecimal() else self._latest
        is_restored, self._latest = number < self._latest, number
        if is_restored:
            self._on_restore()
        for number, (notice, body) in enumerate(notices, 1):
            if number % _SLICE == 0:
                await asyncio.sleep(0)  # a lease is renewed between the objects of a long list
            self._notify(notice, body)
        self.synced.set()
        self._mend()

    async def _watch(self) -> None:
        share = _CHANCE.uniform(*_WATCH_SHARE)
        query = {
            **self._query,
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(int(self._bound * share), 1)),
        }
        path = resource_path(self.gvr, self._namespace)
        stream = self._client.stream(
            path, query=query, idle_seconds=self._idle_seconds, opened=self._open, accept=self._accept[1]
        )
        async for event in stream:
            self._is_silent = False
            self._heard = time.monotonic()
            await self._take(event)

    async def _take(self, event: JSONObject) -> None:
        kind, body = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise StatusError.from_json(body)
        if kind != "BOOKMARK":
            notice = Notice(str(kind))
            shrunk = self._shrink(body)
            place = _place(shrunk)
            if notice is Notice.DELETED:
                self._objects.pop(place, None)
            else:
                await self._be_prepared(shrunk)
                self._objects[place] = _pack(shrunk)
            self._notify(notice, shrunk)
        self._version = str((body.get("metadata") or {}).get("resourceVersion") or self._version)
        if self._version.isdecimal():
            self._latest = max(self._latest, int(self._version))

    async def _be_prepared(self, body: JSONObject) -> None:
        if self._prepare is not None:
            with suppress(Exception):  # a bug: the listener meets and reports it
                await self._prepare(body)

    def _notify(self, notice: Notice, body: JSONObject) -> None:
        self._deliver(notice, body, self._listeners)

    def _deliver(self, notice: Notice, body: JSONObject, listeners: Sequence[Listener]) -> None:
        """Call listeners with a change; those that run into a bug get it again when the watch ends."""
        failed: list[Listener] = []
        for listener in listeners:
            try:
                listener(notice, body)
            except Exception:
                failed.append(listener)
                self._client.on_fault(self.gvr.resource)
                namespace, name = _place(body)
                fields = {"resource": self.gvr.resource, "namespace": namespace, "name": name, "change": str(notice)}
                log.exception("a change of an object ran into a bug", extra={"fields": fields})
        if failed and len(self._faulty) < _MAX_FAULTY:
            self._faulty[_place(body)] = notice, body, tuple(failed)
        elif not failed:
            self._faulty.pop(_place(body), None)

    def _deliver_again(self) -> None:
        for change in tuple(self._faulty.values()):
            self._deliver(*change)


def _pack(body: JSONObject) -> bytes:
    """Return an object as bytes that take no more memory than they are long: orjson's own keep a buffer of 4 KiB."""
    return bytes(memoryview(orjson.dumps(body)))


def _place(body: JSONObject) -> Place:
    metadata = body.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
