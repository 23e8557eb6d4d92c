"""The part of JSON Schema that our published schemas use, to validate a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["schema_errors"]

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
_KNOWN = frozenset(
    {
        *("$schema", "title", "description", "$defs", "$ref", "type", "properties", "required"),
        *("additionalProperties", "items", "enum", "const", "minimum", "maximum", "minLength"),
    }
)


def schema_errors(value: Any, schema: Any, root: Any = None, path: str = "$") -> Iterator[str]:
    """Yield violations with their path; an unknown keyword is an error of its own.

    >>> list(schema_errors({"a": 1}, {"type": "object", "properties": {"a": {"type": "string"}}}))
    ['$.a: not a string']
    """
    root = schema if root is None else root
    if unknown := set(schema) - _KNOWN:
        yield f"{path}: the schema uses {sorted(unknown)}"
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    expected = schema.get("type")
    if expected and (not isinstance(value, _TYPES[expected]) or (expected == "integer" and isinstance(value, bool))):
        yield f"{path}: not {'an' if expected[0] in 'aio' else 'a'} {expected}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{path}: not {schema['const']!r}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: less than {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"{path}: more than {schema['maximum']}"
    if len(value if isinstance(value, str) else "x") < schema.get("minLength", 0):
        yield f"{path}: empty"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from schema_errors(item, schema.get("items", {}), root, f"{path}[{number}]")
    if isinstance(value, dict):
        yield from _object_errors(value, schema, root, path)


def _object_errors(value: dict[str, Any], schema: Any, root: Any, path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: `{name}` is missing"
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from schema_errors(item, known[name], root, f"{path}.{name}")
        elif more is False:
            yield f"{path}: `{name}` is not in the schema"
        elif isinstance(more, dict):
            yield from schema_errors(item, more, root, f"{path}.{name}")
