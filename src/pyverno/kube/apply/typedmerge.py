"""Structured merge: one configuration laid over an object as server-side apply lays it, without ownership.

Maps are merged key by key, lists of type `map` by their keys, sets by value, anything else is replaced. How a list is
merged comes from the schemas; kinds that are not known have atomic lists. Nothing is ever removed: a null empties
scalars and atomic values only. This module must never track field managers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyverno.errors import PatchError
from pyverno.kube.apply.typedcheck import item_key, key_text, problems
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.schemas import SchemaSet, schema_set
from pyverno.value import dataclass

__all__ = ["TypedMerge", "typed_merge"]


@dataclass(frozen=True, slots=True)
class TypedMerge:
    """The object after the merge, and the paths of atomic values that the configuration sets (`.spec.x`)."""

    value: JSON
    atomics: tuple[str, ...] = ()


def typed_merge(document: JSONObject, patch: JSONObject, *, group: str, version: str, kind: str) -> TypedMerge:
    """Lay a configuration over an object of a kind.

    Raises PatchError for what the schema of the kind does not have, for a list item without its keys, for one that
    occurs twice, and for values nested too deeply.

    >>> typed_merge({"a": {"b": 1}}, {"a": {"c": 2}}, group="", version="v1", kind="X").value
    {'a': {'b': 1, 'c': 2}}
    """
    schemas = schema_set()
    schema = schemas.find(group, version, kind)
    atomics: list[str] = []
    try:
        wrong = problems(patch, schema, schemas)
        if wrong:
            raise PatchError(f"failed to convert patch object to typed object: {wrong}")
        merged = _Merger(schemas, atomics).merge(document, patch, schema, "")
    except RecursionError:
        raise PatchError("the configuration or the object is nested too deeply") from None
    return TypedMerge(merged, tuple(dict.fromkeys(atomics)))


class _Merger:
    __slots__ = ("atomics", "schemas")

    def __init__(self, schemas: SchemaSet, atomics: list[str]) -> None:
        self.schemas = schemas
        self.atomics = atomics

    def merge(self, old: JSON, new: JSON, schema: JSONObject | None, path: str) -> JSON:
        schema = self.schemas.followed(schema)
        if new is None:
            return old if old and _is_merged(old, schema) else None
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
            known = [encode(item) for item in old]
            return _interleaved(known, old, _keyed(new, encode, path), lambda _, item, __: item)
        self.atomics.append(path)
        return new

    def _by_keys(self, old: list[JSON], new: list[JSON], schema: JSONObject, path: str) -> list[JSON]:
        items = schema.get("items")
        keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
        defaults = self.schemas.key_defaults(schema)

        def identity(item: JSON) -> str:
            try:
                return key_text(item_key(item, keys, defaults))
            except PatchError as error:
                raise PatchError(f"{path}: {error.message}") from None

        def known(item: JSON) -> str | None:
            try:
                return identity(item)
            except PatchError:
                # what the object already holds is kept, although nothing can be laid over it
                return None

        return _interleaved(
            [known(item) for item in old],
            old,
            _keyed(new, identity, path),
            lambda before, item, index: self.merge(before, item, items, f"{path}[{index}]"),
        )


def _is_merged(old: JSON, schema: JSONObject | None) -> bool:
    """Tell whether a value consists of parts that are merged each by itself, so that a null says nothing about them."""
    if isinstance(old, dict):
        return schema is None or schema.get("x-kubernetes-map-type") != "atomic"
    return isinstance(old, list) and schema is not None and schema.get("x-kubernetes-list-type") in ("map", "set")


def _keyed(items: list[JSON], identity: Callable[[JSON], str], path: str) -> dict[str, JSON]:
    keyed: dict[str, JSON] = {}
    for item in items:
        key = identity(item)
        if key in keyed:
            raise PatchError(f"{path}: duplicate entries for key {key}")
        keyed[key] = item
    return keyed


def _interleaved(
    old_keys: Sequence[str | None], old: list[JSON], new: dict[str, JSON], merged: Callable[[JSON, JSON, int], JSON]
) -> list[JSON]:
    """Merge two lists by the identities of their items; items of both stand in the order of the new list.

    An old item that the new list lacks stays before what follows it (structured-merge-diff: typed/merge.go).
    """
    before: dict[str, JSON] = {}
    for key, item in zip(old_keys, old, strict=True):
        if key is not None and key in new:
            before.setdefault(key, item)
    shared = [key for key in new if key in before]
    result: list[JSON] = []
    done: set[str] = set()
    waiting = list(new)
    place = turn = 0
    for key, item in zip(old_keys, old, strict=True):
        if key is None or key not in new:
            result.append(item)
        elif turn < len(shared) and key == shared[turn]:
            while key not in done:
                following = waiting[place]
                result.append(merged(before.get(following), new[following], place))
                done.add(following)
                turn += following in before
                place += 1
    for index, following in enumerate(waiting[place:], start=place):
        result.append(merged(before.get(following), new[following], index))
    return result


def _child(schema: JSONObject | None, key: str) -> JSONObject | None:
    if schema is None:
        return None
    found = (schema.get("properties") or {}).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None
