"""The part of the cluster that admission may see: its objects and its types.

Admission, authentication and authorization read through it and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from kubesandbox.storage.store import Key, Store, Stored
from kubesandbox.types.resources import ResourceTable, ResourceType
from pyverno.kube.json import JSONObject

__all__ = ["ClusterView", "ObjectReader", "StoreView"]


class ObjectReader(Protocol):
    """Objects as they are stored; a `Store` is one."""

    def get(self, key: Key) -> Stored | None:
        """Return the state of an object, None when there is none."""

    def all(self, resource: str, namespace: str = "") -> list[Stored]:
        """Return the objects of a resource in order of namespace and name."""

    def changed_at(self, resource: str) -> int:
        """Return the version of the newest change of a resource: what caches go by."""


class ClusterView(ObjectReader, Protocol):
    """Objects and types, and objects in other versions of their types."""

    @property
    def table(self) -> ResourceTable:
        """The types that are served now."""

    async def in_version(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object in the version of a type that serves it; raises StatusError 500 where that fails."""


class StoreView:
    """A `ClusterView` of a store; `table` is called every time, because definitions come and go."""

    def __init__(
        self,
        store: Store,
        table: Callable[[], ResourceTable],
        in_version: Callable[[ResourceType, JSONObject], Awaitable[JSONObject]],
    ) -> None:
        """Take the store, a function for the present types, and the converter between versions."""
        self._table = table
        self._in_version = in_version
        self.get = store.get
        self.all = store.all
        self.changed_at = store.changed_at

    @property
    def table(self) -> ResourceTable:
        """The types that are served now."""
        return self._table()

    async def in_version(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object in the version of a type that serves it; raises StatusError 500 where that fails."""
        return await self._in_version(type, body)
