"""CustomResourceDefinitions at work: what is served follows them at once, and goes with them.

The status of a definition is computed by `customresources`.
"""

from __future__ import annotations

from kubesandbox.objects.deletion import CRD_FINALIZER
from kubesandbox.objects.metadata import metadata_of, with_metadata
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.storage.store import Key, Store, Stored
from kubesandbox.types.customresources import accepted, types_of
from kubesandbox.types.resources import ResourceTable, ResourceType
from pyverno.kube.json import JSONObject

__all__ = ["CRDS", "Served"]

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class Served:
    """The types that are served now and their schemas: built-in ones and those of the definitions in the store."""

    def __init__(self, store: Store, table: ResourceTable, schemas: ObjectSchemas) -> None:
        """Take the built-in resource types."""
        self._store = store
        self.table = table
        self.schemas = schemas
        for state in store.all(CRDS):
            self._serve(state.body)

    def definition_of(self, type: ResourceType) -> JSONObject | None:
        """Return the definition that a type comes from, None for built-in ones."""
        state = self._store.get(Key(CRDS, "", type.crd)) if type.is_custom else None
        return state.body if state else None

    def selectable_fields(self, type: ResourceType) -> tuple[str, ...]:
        """Return the fields beside name and namespace that objects of a custom type can be selected by."""
        crd = self.definition_of(type)
        versions: list[JSONObject] = crd["spec"]["versions"] if crd else []
        version: JSONObject = next((item for item in versions if item["name"] == type.version), {})
        return tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ())

    def accept(self, state: Stored, now: str) -> Stored:
        """Serve the resources of a definition that was just written, and update its status."""
        body = accepted(state.body, self.table, now=now)
        if body != state.body:
            state = self._store.put(state.key, body)
        self._serve(state.body)
        return state

    def withdraw(self, name: str) -> None:
        """Serve no longer what a definition defines."""
        self.table = self.table.without_crd(name)
        self.schemas = self.schemas.without_crd(name)

    def leaving(self, name: str) -> ResourceType | None:
        """Return one of the types of a definition that is being deleted, None when it is not."""
        state = self._store.get(Key(CRDS, "", name))
        if state is None or not metadata_of(state.body).get("deletionTimestamp"):
            return None
        return next((type for type in self.table if type.crd == name), None)

    def released(self, crd: JSONObject) -> JSONObject:
        """Return a definition without the finalizer that waits for the deletion of its objects."""
        finalizers = [each for each in metadata_of(crd).get("finalizers") or () if each != CRD_FINALIZER]
        return with_metadata(crd, finalizers=finalizers or None)

    def _serve(self, crd: JSONObject) -> None:
        self.table = self.table.without_crd(metadata_of(crd)["name"]).with_types(types_of(crd))
        self.schemas = self.schemas.with_crd(crd)
