"""Sources of generated objects: copied objects, followed by watches of their own, and served from memory.

A rule that copies an object follows it from then on, one watch for each object or list; a change wakes the rules that
read it. An evaluation gets a followed object from memory, because whatever it misses wakes the rule again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from pyverno.cluster.client import Client
from pyverno.cluster.informer import Informer, Notice
from pyverno.cluster.informerset import InformerSet
from pyverno.kube.gvk import GVR
from pyverno.kube.json import JSONObject
from pyverno.kube.selector import format_selector

__all__ = ["ReadNotes", "Source", "Sources"]

_MAX_WATCHES: Final = 1000
Key = TypeVar("Key", bound=Hashable)


class Source(NamedTuple):
    """One object, or with a `selector` instead of a name all objects of a namespace that it selects."""

    gvr: GVR
    namespace: str
    name: str = ""
    selector: str = ""


Changed = Callable[[Source, Notice, JSONObject], None]
"""Receives changes of what is followed."""


class Sources(Generic[Key]):
    """Followed sources; `run` follows them. `Key` names what depends on a source."""

    def __init__(self, client: Client, on_change: Changed) -> None:
        """Take the client, and a receiver of changes."""
        self._client = client
        self._on_change = on_change
        self._informers: InformerSet[Source] = InformerSet()
        self._dependents: dict[Source, set[Key]] = {}
        self._versions: dict[Source, str] = {}

    def __len__(self) -> int:
        return len(self._informers)

    def __contains__(self, source: Source) -> bool:
        return source in self._informers

    async def run(self) -> None:
        """Follow sources until cancelled."""
        await self._informers.run()

    def follow(self, source: Source, key: Key | None = None, *, version: str | None = None) -> bool:
        """Follow a source from now on; return whether there was room for one more watch.

        `key` depends on it. `version` is the state that is known already: only a later one is a change.
        """
        if key is not None:
            self._dependents.setdefault(source, set()).add(key)
        if source in self._informers:
            return True
        if len(self._informers) >= _MAX_WATCHES:
            return False
        informer = Informer(
            self._client,
            source.gvr,
            namespace=source.namespace,
            selector=source.selector,
            fields=f"metadata.name={source.name}" if source.name else "",
        )
        if version is not None:
            self._versions[source] = version
        informer.listen(lambda notice, body: self._take(source, informer, notice, body))
        self._informers.add(source, informer)
        return True

    def dependents(self, source: Source) -> tuple[Key, ...]:
        """Return what depends on a source."""
        return tuple(self._dependents.get(source, ()))

    def release(self, key: Key) -> None:
        """Note that nothing depends on sources for a key any more."""
        for source in tuple(self._dependents):
            self._dependents[source].discard(key)
            if not self._dependents[source]:
                del self._dependents[source]

    def at_hand(self, gvr: GVR, namespace: str, name: str) -> JSONObject | None:
        """Return a source if it is in memory and memory follows the cluster; called from any thread."""
        informer = self._informers.get(Source(gvr, namespace, name))
        if informer is None or not informer.synced.is_set() or informer.is_stale:
            return None
        return informer.get(name, namespace)

    def _take(self, source: Source, informer: Informer, notice: Notice, body: JSONObject) -> None:
        first = not informer.synced.is_set()
        version = str(body["metadata"].get("resourceVersion") or "")
        if first and source in self._versions and self._versions[source] == version:
            return
        if first and source.selector:
            return  # the objects that the rule has just listed
        self._on_change(source, notice, body)


class ReadNotes(Generic[Key]):
    """Notes what one evaluation reads; used in its thread."""

    def __init__(self, sources: Sources[Key]) -> None:
        """Take the sources that are in memory."""
        self._sources = sources
        self.objects: dict[Source, JSONObject | None] = {}
        self.lists: set[Source] = set()
        self.has_failed = False

    def at_hand(self, gvr: GVR, namespace: str, name: str) -> JSONObject | None:
        """Return an object that is in memory."""
        return self._sources.at_hand(gvr, namespace, name)

    def note_object(self, gvr: GVR, namespace: str, name: str, found: JSONObject | None) -> None:
        """Remember an object that was read, or None for a missing one."""
        self.objects[Source(gvr, namespace, name)] = found

    def note_list(self, gvr: GVR, namespace: str, selector: JSONObject | None) -> None:
        """Note objects that were listed."""
        self.lists.add(Source(gvr, namespace, selector=format_selector(selector)))

    def note_failure(self) -> None:
        """Note that a question got no answer."""
        self.has_failed = True

    @property
    def missing(self) -> tuple[Source, ...]:
        """Objects that were requested and do not exist."""
        return tuple(source for source, found in self.objects.items() if found is None)

    def versions(self) -> Iterator[tuple[Source, str]]:
        """Yield what was read, with its version."""
        for source, found in self.objects.items():
            metadata: Mapping[str, str] = found["metadata"] if found is not None else {}
            yield source, str(metadata.get("resourceVersion") or "")
