"""Structural schemas of policy documents, from the tables that decode them.

A schema accepts whatever the decoder accepts (except nulls), so that the decoder alone decides; its content is for
people (`kubectl explain`) and for tools that complete fields. Unknown fields are kept everywhere: if the API server
pruned a misspelt field, the policy webhook could not report it, and the policy would lose a part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyverno.kube.json import JSONObject
from pyverno.policy.schema import Choice, ListOf, MapOf, Record, SetOf, Shape, boolean, integer, text

__all__ = ["structural_schema"]

_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_DEEPEST: Final = 16
"""The maximum depth of recursive tables; deeper values are free."""

_PLAIN: Final[Mapping[Shape, str]] = {text: "string", boolean: "boolean", integer: "integer"}


def structural_schema(shape: Shape, *, depth: int = 0) -> JSONObject:
    """Return the schema of a shape's values; free values and shapes that are plain functions accept any value.

    >>> from pyverno.policy.schema import list_of
    >>> structural_schema(list_of(text))
    {'type': 'array', 'items': {'type': 'string'}}
    """
    if depth < _DEEPEST:
        match shape:
            case ListOf(item=item):
                found = {"type": "array", "items": structural_schema(item, depth=depth + 1)}
                return {**found, "x-kubernetes-list-type": "set"} if isinstance(shape, SetOf) else found
            case MapOf(item=item):
                return {"type": "object", "additionalProperties": structural_schema(item, depth=depth + 1)}
            case Choice(spellings=spellings):
                return {"type": "string", "enum": list(spellings)}
            case Record():
                return _object(shape, depth)
    plain = _PLAIN.get(shape)
    return {"type": plain} if plain else {_OPEN: True}


def _object(record: Record, depth: int) -> JSONObject:
    found: JSONObject = {"type": "object", _OPEN: True}
    if record.description:
        found["description"] = record.description
    properties: JSONObject = {}
    for name, field in record.fields.items():
        properties[name] = structural_schema(field.shape, depth=depth + 1)
        if field.deprecated:
            properties[name]["description"] = f"Deprecated: {field.deprecated}."
    required = [name for name, field in record.fields.items() if field.required]
    return {
        **found,
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
    }
