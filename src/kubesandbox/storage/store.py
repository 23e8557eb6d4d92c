"""Every object that the server holds, each with the version at which it last changed, and the recent changes.

One counter numbers all changes of all resources, as etcd's revision does; it becomes `metadata.resourceVersion`.
Objects in the store are never changed, a new state replaces the old one. All methods belong to the thread of the event
loop and none of them waits, but `Watcher.next`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSONObject, decode, dump

__all__ = ["Change", "ChangeKind", "Journal", "Key", "Store", "Stored", "TooOldError", "Watcher"]

KEPT_CHANGES = 10_000
"""How many changes of one resource can be watched from the past."""
KEPT_BYTES = 4 * 2**20
"""How much JSON these changes may hold; the newest one always stays."""
LATEST_BODIES = 4096
"""How many objects are kept as values beside their JSON."""
LATEST_BYTES = 2 * 2**20
"""How much JSON these objects may have: as values they take about five times as much memory."""


class Key(NamedTuple):
    """The key of an object: the storage key of its resource (`deployments.apps`), its namespace (or ""), its name."""

    resource: str
    namespace: str
    name: str


class Stored:
    """One state of one object, with its bytes, which are written once for all lists and watches.

    A store keeps the bytes and the latest bodies; the body of any other state is read again from its bytes.
    """

    __slots__ = ("_body", "_json", "_latest", "key", "revision")

    def __init__(self, key: Key, body: JSONObject, revision: int) -> None:
        """Take the object as it is to be read, its `resourceVersion` included."""
        self.key = key
        self.revision = revision
        self._body: JSONObject | None = body
        self._json: bytes | None = None
        self._latest: _LatestBodies | None = None

    @property
    def body(self) -> JSONObject:
        """The object."""
        body = self._body
        if body is None:
            body = self._body = decode(self.json)
            if self._latest is not None:
                self._latest.add(self)
        return body

    @property
    def has_body(self) -> bool:
        """Whether the object is kept as a value, too."""
        return self._body is not None

    @property
    def json(self) -> bytes:
        """The object as JSON."""
        if self._json is None:
            # a copy has the size of its text: what orjson returns keeps the room of its buffer
            self._json = memoryview(dump(self._body)).tobytes()
        return self._json

    def keep_in(self, latest: _LatestBodies) -> None:
        """Keep the body only while it is among the latest."""
        self._latest = latest
        latest.add(self)

    def drop_body(self) -> None:
        """Keep the bytes only."""
        if self.json:
            self._body = None


class _LatestBodies:
    """The states whose bodies were written or read last; older ones drop theirs."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._states: dict[Stored, None] = {}
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0

    def add(self, state: Stored) -> None:
        if state not in self._states:
            self._states[state] = None
            self._bytes += len(state.json)
        while len(self._states) > self._most or (self._bytes > self._most_bytes and len(self._states) > 1):
            self.drop(next(iter(self._states)))

    def clear(self) -> None:
        """Drop all bodies."""
        while self._states:
            self.drop(next(reversed(self._states)))

    def drop(self, state: Stored) -> None:
        """Drop the body of a state that is one of these."""
        if state in self._states:
            del self._states[state]
            self._bytes -= len(state.json)
            state.drop_body()


class ChangeKind(StrEnum):
    """The kind of a change, in the words of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `state` is the object after it (of a deleted one, the last), `before` what it replaced or None."""

    kind: ChangeKind
    state: Stored
    before: Stored | None

    @property
    def revision(self) -> int:
        """The version that the write made."""
        return self.state.revision

    @property
    def size(self) -> int:
        """The bytes of JSON that it keeps from being freed."""
        return len(self.state.json) + (0 if self.before is None else len(self.before.json))


class TooOldError(PyvernoError):
    """A version is before the changes that are still kept; `oldest` is the first one available."""

    code = "too-old"

    def __init__(self, revision: int, oldest: int) -> None:
        """Take the requested version and the oldest one that is kept."""
        super().__init__(f"too old resource version: {revision} ({oldest})")
        self.revision = revision
        self.oldest = oldest


class Journal(Protocol):
    """A durable log of writes; `record` returns when the write cannot be lost."""

    def record(self, change: Change) -> None:
        """Keep one change."""


class Store:
    """All objects in memory; with a journal every write is recorded before it becomes visible."""

    def __init__(
        self,
        states: Iterable[Stored] = (),
        *,
        revision: int = 1,
        journal: Journal | None = None,
        kept_changes: int = KEPT_CHANGES,
        kept_bytes: int = KEPT_BYTES,
        latest_bodies: int = LATEST_BODIES,
        latest_bytes: int = LATEST_BYTES,
        on_deleted: Callable[[int], None] = lambda _size: None,
    ) -> None:
        """Take the objects that are there at start and the version they were left at.

        `kept_changes` and `kept_bytes` bound the history of each resource; `latest_bodies` objects are kept as values,
        as long as their JSON has no more than `latest_bytes`. `on_deleted` receives the size of each deleted object.
        """
        self._latest = _LatestBodies(latest_bodies, latest_bytes)
        self._resources: dict[str, _Shelf] = {}
        self._journal = journal
        self._on_deleted = on_deleted
        self._kept = kept_changes, kept_bytes
        self._revision = self._start = revision
        for state in states:
            state.keep_in(self._latest)
            self._shelf(state.key.resource).put(state)

    @property
    def revision(self) -> int:
        """The version of the newest change."""
        return self._revision

    def changed_at(self, resource: str) -> int:
        """Return the version of the newest change of a resource, or the version at start: what caches go by."""
        shelf = self._resources.get(resource)
        return shelf.changes[-1].revision if shelf and shelf.changes else self._start

    def get(self, key: Key) -> Stored | None:
        """Return the state of an object, None when there is none."""
        shelf = self._resources.get(key.resource)
        return shelf.states.get((key.namespace, key.name)) if shelf else None

    def all(self, resource: str, namespace: str = "") -> list[Stored]:
        """Return the objects of a resource in order of namespace and name, of all namespaces by default."""
        shelf = self._resources.get(resource)
        if shelf is None:
            return []
        if not namespace:
            return [shelf.states[place] for place in shelf.order]
        return [shelf.states[place] for place in shelf.order if place[0] == namespace]

    def all_at(self, resource: str, revision: int, namespace: str = "") -> list[Stored]:
        """Return the objects of a resource as they were at a version.

        Raises TooOldError when the changes since then are no longer kept.
        """
        shelf = self._shelf(resource)
        states = dict(shelf.states)
        for change in reversed(shelf.since(revision)):
            place = (change.state.key.namespace, change.state.key.name)
            if change.before is None:
                states.pop(place, None)
            else:
                states[place] = change.before
        return [states[place] for place in sorted(states) if namespace in ("", place[0])]

    def put(self, key: Key, body: JSONObject) -> Stored:
        """Write an object, new or changed, under the next version; the caller has compared versions before."""
        before = self.get(key)
        state = self._number(key, body)
        kind = ChangeKind.ADDED if before is None else ChangeKind.MODIFIED
        self._write(Change(kind, state, before))
        return state

    def remove(self, key: Key, body: JSONObject | None = None) -> Stored:
        """Take an object away; what watchers see of it last (`body`, or its present state) has the next version.

        Raises KeyError when there is no such object.
        """
        before = self.get(key)
        if before is None:
            raise KeyError(key)
        state = self._number(key, before.body if body is None else body)
        self._write(Change(ChangeKind.DELETED, state, before))
        return state

    def drop_bodies(self) -> None:
        """Keep the bytes of all objects only, until their values are read again."""
        self._latest.clear()

    def changes_since(self, resource: str, revision: int) -> Sequence[Change]:
        """Return the changes of a resource after a version, oldest first; raises TooOldError."""
        return self._shelf(resource).since(revision)

    def watcher(self, resource: str, revision: int) -> Watcher:
        """Return a reader of the changes after a version; raises TooOldError."""
        self._shelf(resource).since(revision)
        return Watcher(self, self._shelf(resource), revision)

    def _number(self, key: Key, body: JSONObject) -> Stored:
        revision = self._revision + 1
        metadata = {**(body.get("metadata") or {}), "resourceVersion": str(revision)}
        return Stored(key, {**body, "metadata": metadata}, revision)

    def _write(self, change: Change) -> None:
        if self._journal is not None:
            self._journal.record(change)
        self._revision = change.revision
        change.state.keep_in(self._latest)
        self._shelf(change.state.key.resource).record(change)
        if change.kind is ChangeKind.DELETED:
            self._on_deleted(len(change.state.json))

    def _shelf(self, resource: str) -> _Shelf:
        shelf = self._resources.get(resource)
        if shelf is None:
            shelf = self._resources[resource] = _Shelf(*self._kept, self._start, self._latest)
        return shelf


class _Shelf:
    """The objects of one resource and their recent changes."""

    def __init__(self, kept: int, kept_bytes: int, revision: int, latest: _LatestBodies) -> None:
        self.states: dict[tuple[str, str], Stored] = {}
        self.changes: deque[Change] = deque()
        self._kept, self._kept_bytes, self._bytes = kept, kept_bytes, 0
        self._latest = latest
        self.oldest = revision
        """Changes after this version are all here."""
        self.written = asyncio.Event()
        self._order: list[tuple[str, str]] | None = None

    @property
    def order(self) -> list[tuple[str, str]]:
        if self._order is None:
            self._order = sorted(self.states)
        return self._order

    def put(self, state: Stored) -> None:
        place = (state.key.namespace, state.key.name)
        if place not in self.states:
            self._order = None
        self.states[place] = state

    def record(self, change: Change) -> None:
        if change.kind is ChangeKind.DELETED:
            del self.states[(change.state.key.namespace, change.state.key.name)]
            self._order = None
        else:
            self.put(change.state)
        self.changes.append(change)
        self._bytes += change.size
        while len(self.changes) > self._kept or (self._bytes > self._kept_bytes and len(self.changes) > 1):
            forgotten = self.changes.popleft()
            self._bytes -= forgotten.size
            self.oldest = forgotten.revision
            self._drop(forgotten)
        self.written.set()
        self.written = asyncio.Event()

    def _drop(self, forgotten: Change) -> None:
        """Drop what only the history held: the state before a change, and the last one of a deleted object."""
        if forgotten.before is not None:
            self._latest.drop(forgotten.before)
        if forgotten.kind is ChangeKind.DELETED:
            self._latest.drop(forgotten.state)

    def since(self, revision: int) -> Sequence[Change]:
        if revision < self.oldest:
            raise TooOldError(revision, self.oldest)
        # from the end: watchers ask for the last few of many
        found: list[Change] = []
        for change in reversed(self.changes):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found


class Watcher:
    """Reads the changes of one resource; it holds a place and no queue, so it cannot hold up writers."""

    def __init__(self, store: Store, shelf: _Shelf, revision: int) -> None:
        self._store = store
        self._shelf = shelf
        self.revision = revision
        """The version up to which changes have been read."""

    async def next(self) -> Sequence[Change]:
        """Wait for changes and return them; raises TooOldError when the reader fell behind what is kept."""
        while True:
            written = self._shelf.written
            found = self._shelf.since(self.revision)
            if found:
                self.revision = found[-1].revision
                return found
            self.revision = max(self.revision, self._store.revision)
            await written.wait()
