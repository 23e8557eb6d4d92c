"""The reads of an API server: single objects, lists and watches, in the requested version.

Objects are kept in one version; a read converts them, and where only a webhook can convert them, it calls that webhook.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial

from kubesandbox.objects.metadata import ordered
from kubesandbox.parsing.requests import ListOptions
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage import listing, watching
from kubesandbox.storage.store import Key, Store, Stored
from kubesandbox.types.converter import Converter
from kubesandbox.types.definitions import Served
from kubesandbox.types.resources import ResourceTable, ResourceType, builtin_table
from kubesandbox.writes import Outcome
from pyverno.kube.json import JSONObject
from pyverno.kube.status import not_found

__all__ = ["Reads"]


class Reads:
    """Objects of all types as clients read them."""

    _converter: Converter

    def __init__(self, kube_version: str, store: Store, schemas: ObjectSchemas) -> None:
        """Serve the types of a Kubernetes version, and those that definitions in the store add."""
        self.kube_version = kube_version
        self.store = store
        self._served = Served(store, builtin_table(kube_version), schemas)

    @property
    def table(self) -> ResourceTable:
        """The types that are served now."""
        return self._served.table

    @property
    def schemas(self) -> ObjectSchemas:
        """The schemas of objects of these types."""
        return self._served.schemas

    def get(self, type: ResourceType, namespace: str, name: str) -> Stored:
        """Return the state of an object; raises StatusError 404."""
        state = self.store.get(Key(type.key, namespace, name))
        if state is None:
            raise not_found(type.group, type.plural, name)
        return state

    async def in_version(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object in the version of a type; raises StatusError 500 where only a webhook could and does not."""
        return await self._converter.one(type, body)

    async def list(self, type: ResourceType, namespace: str, options: ListOptions) -> listing.Page:
        """Return the requested objects as they are stored; raises StatusError.

        Custom objects are in the requested version.
        """
        chosen = self._selection(type, options)
        return await listing.list_page(self.store, type, namespace, options, chosen, convert=self._converting(type))

    def watch(self, type: ResourceType, namespace: str, options: ListOptions) -> AsyncGenerator[watching.Events, None]:
        """Yield what happens to objects, as they are stored, in groups; the first group comes at once.

        Custom objects are in the requested version. Raises StatusError for what cannot be watched, at the
        latest in place of the first group.
        """
        chosen = self._selection(type, options)
        return watching.watch_events(self.store, type, namespace, options, chosen, convert=self._converting(type))

    def _converting(self, type: ResourceType) -> listing.Convert | None:
        """Return what brings states into the version of a type, None where they differ in their names at most."""
        is_alone = type.version == type.storage and len(self.table.versions_of(type.key)) == 1
        return partial(self._convert_states, type) if type.is_custom and not is_alone else None

    async def _convert_states(self, type: ResourceType, states: Sequence[Stored]) -> Sequence[Stored]:
        bodies = await self._converter.all(type, [state.body for state in states])
        return [
            state if state.body is body else Stored(state.key, body, state.revision)
            for state, body in zip(states, bodies, strict=True)
        ]

    def definition_of(self, type: ResourceType) -> JSONObject | None:
        """Return the CustomResourceDefinition that a type comes from, None for built-in ones."""
        return self._served.definition_of(type)

    def _selection(self, type: ResourceType, options: ListOptions) -> listing.Selection:
        fields = self._served.selectable_fields(type) if options.field_selector else ()
        return listing.selection(type, options, fields)

    async def _to_storage_version(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object as it is kept: custom ones in the version that their definition names."""
        kept = replace(type, version=type.storage) if type.storage else self.table.versions_of(type.key)[0]
        found = await self.in_version(kept, body)
        if kept.is_custom and kept.version != type.version:
            # upstream fills them in when it reads the object
            found = self.schemas.default(kept, found)
        return ordered(found, kept.api_version, kept.kind)

    async def _outcome(self, type: ResourceType, state: Stored, status: int = 200) -> Outcome:
        return Outcome(await self.in_version(type, state.body), status, state)

    async def _convert_result(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return the result of a deletion, an object or a Status, in the requested version."""
        return await self.in_version(type, body) if body.get("kind") == type.kind else body
