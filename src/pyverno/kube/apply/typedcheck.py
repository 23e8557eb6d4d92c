"""What is wrong with a configuration by the schema of its kind: fields that it does not have, values of other types.

Texts are those of Kubernetes' structured merge (structured-merge-diff: typed/validate.go), which refuses such a
configuration before it merges. This module must never ask for what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pyverno.errors import PatchError
from pyverno.kube.gofloat import float_verb_text
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.schemas import SchemaSet

__all__ = ["item_key", "key_text", "problems", "shown"]

_Found = Iterator[tuple[str, str]]


def problems(value: JSON, schema: JSONObject | None, schemas: SchemaSet) -> str:
    """Return all problems in one text, "" when there are none; a kind without a schema takes everything.

    >>> from pyverno.kube.schemas import schema_set
    >>> known = schema_set()
    >>> problems({"data": {"a": 1}, "nope": 1}, known.find("", "v1", "ConfigMap"), known).splitlines()[1]
    '  .data.a: expected string, got &value.valueUnstructured{Value:1}'
    """
    found = [f"{path}: {text}" if path else text for path, text in _Check(schemas).value(value, schema)]
    return found[0] if len(found) == 1 else "\n".join(("errors:", *(f"  {each}" for each in found))) if found else ""


def item_key(item: JSON, keys: Sequence[str], defaults: Mapping[str, JSON]) -> JSONObject:
    """Return the keys of an item of an associative list; raises PatchError with the reason when it has none."""
    if item is None:
        raise PatchError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise PatchError("associative list with keys may not have non-map elements")
    given = {key: defaults.get(key) if item.get(key) is None else item[key] for key in keys}
    found = {key: value for key, value in given.items() if value is not None}
    if keys and not found:
        listed = " ".join(map(encode, keys))
        raise PatchError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return found


def key_text(key: JSONObject) -> str:
    """Return keys as paths show them.

    >>> key_text({"protocol": "TCP", "containerPort": 80})
    '[containerPort=80,protocol="TCP"]'
    """
    return f"[{','.join(f'{name}={encode(value)}' for name, value in sorted(key.items()))}]"


class _Check:
    __slots__ = ("schemas",)

    def __init__(self, schemas: SchemaSet) -> None:
        self.schemas = schemas

    def value(self, value: JSON, schema: JSONObject | None, path: str = "") -> _Found:
        schema = self.schemas.followed(schema)
        if schema is None or value is None:
            return
        kind = _kind(schema)
        if kind == "object":
            yield from self._map(value, schema, path)
        elif kind == "array":
            yield from self._list(value, schema, path)
        elif kind in _SCALARS:
            holds, text = _SCALARS[kind]
            if not holds(value):
                yield path, text(value)

    def _map(self, value: JSON, schema: JSONObject, path: str) -> _Found:
        fields, values = schema.get("properties"), schema.get("additionalProperties")
        if fields is None and values is None:
            # any JSON at all, such as a RawExtension
            return
        if not isinstance(value, dict):
            yield path, f"expected map, got {shown(value)}"
            return
        for key, item in value.items():
            inner = (fields or {}).get(key, values)
            if inner is None:
                yield f"{path}.{key}", "field not declared in schema"
                # Kubernetes: nothing more is said about this map
                return
            yield from self.value(item, inner if isinstance(inner, dict) else None, f"{path}.{key}")

    def _list(self, value: JSON, schema: JSONObject, path: str) -> _Found:
        if not isinstance(value, list):
            yield path, f"expected list, got {shown(value)}"
            return
        items = schema.get("items")
        seen: set[str] = set()
        for index, item in enumerate(value):
            try:
                element, is_associative = self._element(item, index, schema)
            except PatchError as error:
                yield path, f"element {index}: {error.message}"
                return
            if is_associative and element in seen:
                yield path, f"duplicate entries for key {element}"
            seen.add(element)
            yield from self.value(item, items, path + element)

    def _element(self, item: JSON, index: int, schema: JSONObject) -> tuple[str, bool]:
        """Return how paths show an item, and whether two items of one list may not be shown alike."""
        kind = schema.get("x-kubernetes-list-type")
        if kind == "map":
            keys: Sequence[str] = schema.get("x-kubernetes-list-map-keys") or ()
            return key_text(item_key(item, keys, self.schemas.key_defaults(schema))), True
        if kind == "set":
            if isinstance(item, dict):
                raise PatchError("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise PatchError("not supported: associative list with lists as elements")
            if item is None:
                raise PatchError("associative list without keys has an element that's an explicit null")
            return f"[={encode(item)}]", True
        return f"[{index}]", False


def _kind(schema: JSONObject) -> str:
    if schema.get("oneOf") or schema.get("x-kubernetes-int-or-string"):
        return "untyped"
    kinds = schema.get("type")
    named = [kind for kind in ([kinds] if isinstance(kinds, str) else kinds or ()) if kind != "null"]
    kind = str(named[0]) if named else ""
    # Kubernetes: a text with a format other than byte may be any scalar (kube-openapi: pkg/schemaconv)
    return "untyped" if kind == "string" and schema.get("format") not in (None, "", "byte") else kind


def _is_number(value: JSON) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
_SCALARS: Final[Mapping[str, tuple[Callable[[JSON], bool], Callable[[JSON], str]]]] = {
    "integer": (_is_number, lambda value: f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"),
    "number": (_is_number, lambda value: f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"),
    "string": (
        lambda value: isinstance(value, str),
        lambda value: f"expected string, got &value.valueUnstructured{{Value:{_source(value)}}}",
    ),
    "boolean": (lambda value: isinstance(value, bool), lambda value: f"expected boolean, got {shown(value)}"),
    "untyped": (
        lambda value: isinstance(value, (bool, int, float, str)),
        lambda value: f"expected any scalar, got {shown(value)}",
    ),
}


def shown(value: JSON) -> str:
    """Return a value as Go prints it inside of its wrapper.

    >>> shown({"a": [1, None]})
    '&{map[a:[1 <nil>]]}'
    """
    return f"&{{{_printed(value)}}}"


def _printed(value: JSON) -> str:
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_printed(item)}' for key, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else _number_or_bool(value)


def _source(value: JSON) -> str:
    """Return a value as Go source writes it."""
    if isinstance(value, dict):
        entries = (f"{encode(key)}:{_source(item)}" for key, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{_listed(entries)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{_listed(map(_source, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return encode(value) if isinstance(value, str) else _number_or_bool(value)


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items)


def _number_or_bool(value: JSON) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return float_verb_text(value) if isinstance(value, float) else str(value)
