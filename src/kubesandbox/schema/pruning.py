"""Custom resources: fields that their schema does not know, nulls it does not allow, and its defaults.

Both functions are compiled per schema and share what they do not change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kubesandbox.schema.fieldpath import Place, place_text
from pyverno.kube.json import JSON, JSONObject

__all__ = ["Defaulter", "Pruner", "compile_defaults", "compile_pruning"]

Pruner: TypeAlias = Callable[[JSON, Place, list[str]], JSON]
Defaulter: TypeAlias = Callable[[JSON], JSON]

_EMBEDDED = frozenset({"apiVersion", "kind", "metadata"})


def compile_pruning(schema: JSONObject, *, is_root: bool = False) -> Pruner:
    """Return a function that gives a value without unknown fields; their names are added to a list of problems.

    >>> prune = compile_pruning({"properties": {"a": {}}})
    >>> problems = []
    >>> prune({"a": 1, "b": 2}, None, problems), problems
    ({'a': 1}, ['unknown field "b"'])
    """
    if schema.get("x-kubernetes-preserve-unknown-fields") and not _has_below(schema):
        return _keep
    fields = {key: compile_pruning(value) for key, value in _maps(schema.get("properties")).items()}
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    own = _EMBEDDED if is_root or schema.get("x-kubernetes-embedded-resource") else frozenset()
    values = schema.get("additionalProperties")
    every = compile_pruning(values) if isinstance(values, dict) else _keep if values is True else None
    items = compile_pruning(schema["items"]) if isinstance(schema.get("items"), dict) else None

    def prune(value: JSON, place: Place, problems: list[str]) -> JSON:
        if type(value) is dict:
            found: JSONObject = {}
            for key, item in value.items():
                inner = fields.get(key, every)
                if key in own:
                    found[key] = item
                elif inner is not None:
                    found[key] = inner(item, (place, key), problems)
                elif keeps:
                    found[key] = item
                else:
                    problems.append(f'unknown field "{place_text((place, key))}"')
            return found
        if type(value) is list and items is not None:
            return [items(item, (place, index), problems) for index, item in enumerate(value)]
        return value

    return prune


def compile_defaults(schema: JSONObject) -> Defaulter | None:
    """Return a function that fills in defaults, None where the schema has none; nulls count as absent unless allowed.

    >>> fill = compile_defaults({"properties": {"a": {"default": 1}, "b": {"type": "string"}}})
    >>> fill({"b": None})
    {'a': 1}
    """
    properties = _maps(schema.get("properties"))
    defaults = [(key, value["default"], _is_nullable(value)) for key, value in properties.items() if "default" in value]
    inner = {key: found for key, value in properties.items() if (found := compile_defaults(value)) is not None}
    refused = frozenset(key for key, value in properties.items() if not _is_nullable(value) and "default" not in value)
    values = schema.get("additionalProperties")
    values = values if isinstance(values, dict) else None
    every = compile_defaults(values) if values is not None else None
    items_schema = schema.get("items")
    items = compile_defaults(items_schema) if isinstance(items_schema, dict) else None
    if not properties and values is None and items is None:
        return None
    drops_values = values is not None and not _is_nullable(values) and "default" not in values

    def fill(value: JSON) -> JSON:
        if type(value) is list:
            return [items(item) for item in value] if items is not None else value
        if type(value) is not dict:
            return value
        found: JSONObject = {}
        for key, item in value.items():
            if item is None and (key in refused or (drops_values and key not in properties)):
                continue
            found[key] = item
        for key, default, nullable in defaults:
            if key not in found or (found[key] is None and not nullable):
                found[key] = default
        for key, item in found.items():
            filler = inner.get(key, None if key in properties else every)
            if filler is not None:
                found[key] = filler(item)
        return found

    return fill


def _keep(value: JSON, place: Place, problems: list[str]) -> JSON:
    return value


def _has_below(schema: JSONObject) -> bool:
    return any(schema.get(key) for key in ("properties", "additionalProperties", "items"))


def _is_nullable(schema: JSONObject) -> bool:
    return bool(schema.get("nullable"))


def _maps(value: JSON) -> dict[str, JSONObject]:
    return {key: item for key, item in value.items() if isinstance(item, dict)} if isinstance(value, dict) else {}
