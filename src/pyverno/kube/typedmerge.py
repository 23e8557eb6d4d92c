"""Structured merge: one configuration laid over an object as server-side apply lays it, without ownership.

Maps are merged key by key, lists of type `map` by their keys, sets by value, anything else is replaced. How a list is
merged comes from the schemas; kinds that are not known have atomic lists. Nothing is ever removed. This module must never
track field managers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.kube.schemas import SchemaSet, schema_set

__all__ = ["TypedMerge", "typed_merge"]


@dataclass(frozen=True, slots=True)
class TypedMerge:
    """The object after the merge, and the paths of atomic values that the configuration sets (`.spec.x`)."""

    value: JSON
    atomics: tuple[str, ...] = ()


def typed_merge(document: JSONObject, patch: JSONObject, *, group: str, version: str, kind: str) -> TypedMerge:
    """Lay a configuration over an object of a kind.

    >>> typed_merge({"a": {"b": 1}}, {"a": {"c": 2}}, group="", version="v1", kind="X").value
    {'a': {'b': 1, 'c': 2}}
    """
    schemas = schema_set()
    schema = schemas.find(group, version, kind)
    atomics: list[str] = []
    merged = _Merger(schemas, atomics).merge(document, patch, schema, "")
    return TypedMerge(merged, tuple(atomics))


class _Merger:
    __slots__ = ("atomics", "schemas")

    def __init__(self, schemas: SchemaSet, atomics: list[str]) -> None:
        self.schemas = schemas
        self.atomics = atomics

    def merge(self, old: JSON, new: JSON, schema: JSONObject | None, path: str) -> JSON:
        schema = self._followed(schema)
        if isinstance(new, dict):
            if schema is not None and schema.get("x-kubernetes-map-type") == "atomic":
                self.atomics.append(path)
                return new
            return self._map(old if isinstance(old, dict) else {}, new, schema, path)
        if isinstance(new, list):
            return self._list(old if isinstance(old, list) else [], new, schema, path)
        return new

    def _map(self, old: JSONObject, new: JSONObject, schema: JSONObject | None, path: str) -> JSONObject:
        merged = dict(old)
        for key, value in new.items():
            merged[key] = self.merge(old.get(key), value, _child(schema, key), f"{path}.{key}")
        return merged

    def _list(self, old: list[JSON], new: list[JSON], schema: JSONObject | None, path: str) -> list[JSON]:
        kind = None if schema is None else schema.get("x-kubernetes-list-type")
        if kind == "map" and schema is not None:
            return self._by_keys(old, new, schema, path)
        if kind == "set":
            return [*old, *(item for item in new if not any(equal(item, known) for known in old))]
        self.atomics.append(path)
        return new

    def _by_keys(self, old: list[JSON], new: list[JSON], schema: JSONObject, path: str) -> list[JSON]:
        keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
        items = schema.get("items")
        defaults = {key: _default(self._followed(items), key) for key in keys}
        merged = list(old)
        places = {self._identity(item, keys, defaults): place for place, item in enumerate(old)}
        for item in new:
            identity = self._identity(item, keys, defaults)
            place = places.get(identity)
            if place is None:
                places[identity] = len(merged)
                merged.append(item)
            else:
                merged[place] = self.merge(merged[place], item, items, f"{path}[]")
        return merged

    @staticmethod
    def _identity(item: JSON, keys: Sequence[str], defaults: JSONObject) -> tuple[str, ...]:
        if not isinstance(item, dict):
            return (repr(item),)
        return tuple(repr(item.get(key, defaults[key])) for key in keys)

    def _followed(self, schema: JSONObject | None) -> JSONObject | None:
        for _ in range(8):
            if schema is None:
                return None
            reference = schema.get("$ref")
            if reference is None and len(schema.get("allOf") or ()) == 1:
                # the place of use may say how a list is merged, the referred type what it is
                inner = self._followed(schema["allOf"][0]) or {}
                return {**inner, **{key: value for key, value in schema.items() if key != "allOf"}}
            if not isinstance(reference, str):
                return schema
            schema = self.schemas.definitions.get(reference.rpartition("/")[2])
        return None


def _child(schema: JSONObject | None, key: str) -> JSONObject | None:
    if schema is None:
        return None
    found = (schema.get("properties") or {}).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def _default(schema: JSONObject | None, key: str) -> JSON:
    if schema is None:
        return None
    default = ((schema.get("properties") or {}).get(key) or {}).get("default")
    # Kubernetes: ports are keyed by protocol, whose default the published schemas leave out
    return "TCP" if default is None and key == "protocol" else default
