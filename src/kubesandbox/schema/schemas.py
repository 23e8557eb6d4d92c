"""All schemas of a server: one immutable value, which a change of a CRD replaces by another.

This module must never judge anything itself: it finds the module that does.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesandbox.defaults.walk import BuiltinDefaults
from kubesandbox.objects.allocation import Allocator
from kubesandbox.objects.preparation import Preparation, keep_all_but_status
from kubesandbox.schema.custom import CustomSchema
from kubesandbox.schema.decoding import Decoded, Decoders
from kubesandbox.types.resources import ResourceType
from kubesandbox.validation.builtin import BuiltinValidation, name_errors
from pyverno.kube.json import JSONObject
from pyverno.kube.schemas import SchemaSet, schema_set
from pyverno.kube.status import FieldError

__all__ = ["ObjectSchemas"]


class ObjectSchemas:
    """The schemas of one Kubernetes version and of the CRDs that a server has.

    `allocator` gives addresses and ports to services.

    >>> from kubesandbox.types.resources import builtin_table
    >>> schemas, pods = ObjectSchemas("1.35"), builtin_table("1.35").find("", "v1", "pods")
    >>> body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containerz": []}}
    >>> schemas.decode(pods, body).problems
    ('unknown field "spec.containerz"',)
    >>> schemas.default(pods, body)["spec"]["restartPolicy"]
    'Always'
    """

    def __init__(self, kube_version: str, *, allocator: Allocator | None = None) -> None:
        self.kube_version = kube_version
        self._builtin = _Builtin(kube_version, allocator or Allocator())
        self._custom: Mapping[str, Mapping[str, CustomSchema]] = {}

    def with_crd(self, crd: JSONObject) -> ObjectSchemas:
        """Return the schemas with those of a CustomResourceDefinition, replacing an older form of it."""
        spec = crd.get("spec") or {}
        entries = [entry for entry in spec.get("versions") or () if isinstance(entry, dict)]
        versions = {str(entry.get("name")): CustomSchema(crd, entry, self._builtin.version) for entry in entries}
        return self._with({**self._custom, _name(crd): versions})

    def without_crd(self, name: str) -> ObjectSchemas:
        """Return the schemas without those of a CustomResourceDefinition."""
        return self._with({key: value for key, value in self._custom.items() if key != name})

    def _with(self, custom: Mapping[str, Mapping[str, CustomSchema]]) -> ObjectSchemas:
        made = object.__new__(ObjectSchemas)
        made.kube_version, made._builtin, made._custom = self.kube_version, self._builtin, custom
        return made

    def custom(self, type_: ResourceType) -> CustomSchema | None:
        """Return the schema of a custom resource in one version."""
        return self._custom.get(type_.crd, {}).get(type_.version) if type_.is_custom else None

    @property
    def definitions(self) -> SchemaSet:
        """The definitions of built-in kinds."""
        return self._builtin.schemas

    def decode(self, type_: ResourceType, body: JSONObject, *, subresource: str = "") -> Decoded:
        """Read a body: an object without unknown fields, and what strict decoding reports about those.

        Raises StatusError 400 for values of wrong JSON types in built-in objects and in metadata.
        """
        if type_.is_custom and subresource not in ("scale",):
            return self._decode_custom(type_, body)
        return self._builtin.decode(type_, body, subresource)

    def _decode_custom(self, type_: ResourceType, body: JSONObject) -> Decoded:
        problems: list[str] = []
        schema = self.custom(type_)
        pruned = schema.prune(body, problems) if schema is not None else body
        if isinstance(body.get("metadata"), dict):
            decoders = self._builtin.decoders
            metadata = decoders.metadata(type_.kind, type_.version, body["metadata"], problems)
            pruned = {**pruned, "metadata": metadata}
        return Decoded(pruned, tuple(problems))

    def default(self, type_: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object with all defaults filled in; idempotent."""
        if type_.is_custom:
            schema = self.custom(type_)
            return schema.default(body) if schema is not None else body
        return self._builtin.default(type_, body)

    def complete(self, type_: ResourceType, body: JSONObject, *, subresource: str = "") -> JSONObject:
        """Return what server-side apply made with defaults, and with the empty parts that its kind requires."""
        return self.default(type_, self.decode(type_, body, subresource=subresource).body)

    def validate(
        self, type_: ResourceType, body: JSONObject, old: JSONObject | None = None, *, subresource: str = ""
    ) -> list[FieldError]:
        """Return the errors in an object, and in the change when the stored object is given."""
        if type_.key == "services" and not subresource:
            # Kubernetes takes addresses and ports before it looks at anything else
            refused = self._builtin.allocator.refusals(body, old)
            if refused:
                return refused
        if not type_.is_custom:
            return self._builtin.validation.errors(type_, body, old, subresource)
        schema = self.custom(type_)
        errors = name_errors(type_, body) if old is None else []
        return schema.validate(body, old, subresource=subresource, found=errors) if schema is not None else errors

    def normalize(
        self, type_: ResourceType, body: JSONObject, old: JSONObject | None = None, *, subresource: str = ""
    ) -> JSONObject:
        """Return what is stored: status and spec kept where the writer may not change them, fields the server sets."""
        if subresource == "status" and old is not None:
            return keep_all_but_status(type_.key, body, old, is_custom=type_.is_custom)
        if not type_.is_custom:
            preparation = self._builtin.preparation
            return preparation.create(type_.key, body) if old is None else preparation.update(type_.key, body, old)
        schema = self.custom(type_)
        if schema is None or not schema.has_status:
            return body
        kept = {key: value for key, value in body.items() if key != "status"}
        return {**kept, "status": old["status"]} if old is not None and "status" in old else kept


class _Builtin:
    """Everything about built-in kinds, which no CRD changes."""

    def __init__(self, kube_version: str, allocator: Allocator) -> None:
        self.schemas = schema_set(kube_version)
        major, _, minor = self.schemas.version.partition(".")
        self.version = (int(major), int(minor))
        self.decoders = Decoders(self.schemas)
        self.defaults = BuiltinDefaults(self.schemas)
        self.validation = BuiltinValidation(self.schemas, self.version)
        self._statuses = self._zero_statuses()
        self.allocator = allocator
        self.preparation = Preparation(self._statuses.get, allocator)

    def decode(self, type_: ResourceType, body: JSONObject, subresource: str) -> Decoded:
        gvk = type_.subresource_gvk(subresource) if subresource else type_.gvk
        if subresource and (gvk.group, gvk.version, gvk.kind) not in self.schemas.kinds:
            gvk = type_.gvk
        definition = self.schemas.kinds.get((gvk.group, gvk.version, gvk.kind))
        return self.decoders.decode(definition, gvk.kind, gvk.version, body) if definition else Decoded(body)

    def default(self, type_: ResourceType, body: JSONObject) -> JSONObject:
        definition = self.schemas.kinds.get((type_.group, type_.version, type_.kind))
        return self.defaults.fill(definition, body) if definition else body

    def _zero_statuses(self) -> dict[str, JSONObject]:
        """Return the empty status of every resource, as Go writes it, by storage key."""
        from kubesandbox.types.resources import (
            builtin_table,  # built once per server; keeps the import of this module cheap
        )

        found: dict[str, JSONObject] = {}
        for type_ in builtin_table(self.schemas.version):
            definition = self.schemas.kinds.get((type_.group, type_.version, type_.kind))
            status = self.schemas.definitions[definition].get("properties", {}).get("status") if definition else None
            if status is not None and "$ref" in status:
                found.setdefault(type_.key, self.decoders.zero(status["$ref"]))
        return found


def _name(crd: JSONObject) -> str:
    return str((crd.get("metadata") or {}).get("name", ""))
