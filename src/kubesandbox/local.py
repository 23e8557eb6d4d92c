"""Access from the same process: reads of the store, writes through the whole server.

Admission judges these writes like all others; permissions are not checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from kubesandbox.apiserver import ApiServer
from kubesandbox.objects.metadata import metadata_of
from kubesandbox.objects.patching import Patch
from kubesandbox.objects.pods import POSTED
from kubesandbox.parsing.requests import MERGE_PATCH, DeleteOptions, WriteOptions
from kubesandbox.storage.store import Change, ChangeKind, Key, Watcher
from kubesandbox.writes import Write
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject
from pyverno.kube.status import path_not_found

__all__ = ["LocalClient"]

_OPTIONS = WriteOptions(field_validation="Ignore")


class LocalClient:
    """One user's way into the server; `resource` is a storage key (`pods`, `deployments.apps`).

    What it returns may not be changed. Errors are `StatusError`.
    """

    def __init__(self, server: ApiServer, user: User, *, manager: str = "") -> None:
        """Take the server and the user; `manager` is what managed fields name (the user's name by default)."""
        self._server = server
        self._user = user
        self._manager = manager or user.username.rpartition(":")[2] or "unknown"

    def get(self, resource: str, name: str, namespace: str = "") -> JSONObject | None:
        """Return an object in the preferred version, None when there is none."""
        state = self._server.store.get(Key(resource, namespace, name))
        return state.body if state else None

    def list(self, resource: str, namespace: str = "") -> list[JSONObject]:
        """Return the objects of a namespace, of all by default."""
        return [state.body for state in self._server.store.all(resource, namespace)]

    async def create(self, resource: str, body: JSONObject, *, subresource: str = "", name: str = "") -> JSONObject:
        """Create an object in the namespace that it names; `name` is whose subresource is meant."""
        metadata = metadata_of(body)
        write = self._write(resource, metadata.get("namespace", ""), name or metadata.get("name", ""), subresource)
        if subresource:
            return (await POSTED[write.type.key, subresource](self._server, write, body)).body
        return (await self._server.create(write, body)).body

    async def update(self, resource: str, body: JSONObject, *, subresource: str = "") -> JSONObject:
        """Replace an object."""
        metadata = metadata_of(body)
        write = self._write(resource, metadata.get("namespace", ""), metadata.get("name", ""), subresource)
        return (await self._server.update(write, body)).body

    async def patch(
        self, resource: str, name: str, namespace: str, patch: JSONObject, *, subresource: str = ""
    ) -> JSONObject:
        """Apply a merge patch."""
        write = self._write(resource, namespace, name, subresource)
        return (await self._server.patch(write, Patch(MERGE_PATCH, patch))).body

    async def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        propagation: str = "",
        uid: str = "",
        grace: int | None = None,
    ) -> None:
        """Delete an object; `uid` makes sure that it is the one that is meant, `grace` is in seconds."""
        options = DeleteOptions(propagation=propagation, uid=uid, grace=grace)
        await self._server.delete(self._write(resource, namespace, name), options)

    async def changes(self, *resources: str) -> AsyncIterator[Change]:
        """Yield everything present as ADDED, then what happens; one reader may follow several resources."""
        store = self._server.store
        watchers = [store.watcher(resource, store.revision) for resource in resources]
        present = [state for resource in resources for state in store.all(resource)]
        for state in present:
            yield Change(ChangeKind.ADDED, state, None)
        async for change in _merge(watchers):
            yield change

    def _write(self, resource: str, namespace: str, name: str, subresource: str = "") -> Write:
        versions = self._server.table.versions_of(resource)
        if not versions:
            raise path_not_found()
        # custom objects are read as they are kept, so they are written in that version
        kept = next((type for type in versions if type.version == type.storage), versions[0])
        return Write(
            type=kept,
            namespace=namespace,
            name=name,
            user=self._user,
            subresource=subresource,
            options=_OPTIONS,
            manager=self._manager,
        )


async def _merge(watchers: list[Watcher]) -> AsyncIterator[Change]:
    """Yield the changes that several watchers read, as they come."""
    if len(watchers) == 1:
        while True:
            for change in await watchers[0].next():
                yield change
    waiting = {asyncio.ensure_future(watcher.next()): watcher for watcher in watchers}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found: list[Change] = []
            for task in done:
                watcher = waiting.pop(task)
                found.extend(task.result())
                waiting[asyncio.ensure_future(watcher.next())] = watcher
            for change in sorted(found, key=lambda change: change.revision):
                yield change
    finally:
        for task in waiting:
            task.cancel()
