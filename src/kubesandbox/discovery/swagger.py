"""OpenAPI v2: the definitions of the served resources, for `kubectl explain` and clients of this version.

The definitions are those of OpenAPI v3, written as version 2 has them; the document has no paths. As protobuf it
follows the messages of gnostic's OpenAPIv2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from kubesandbox.protobuf.wire import write_field
from pyverno.kube.json import JSON, JSONObject

__all__ = ["SWAGGER_MEDIA", "encode_swagger", "swagger_document"]

SWAGGER_MEDIA: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type of OpenAPI v2 as protobuf; clients ask for it with `@v1.0` in place of `.v1.0`."""

_V3: Final = "#/components/schemas/"
_V2: Final = "#/definitions/"
_INT_OR_STRING: Final[JSONObject] = {"type": "string", "format": "int-or-string"}
_SCALARS: Final = ("description", "format", "title", "pattern", "default", "enum", "required", "type")
_MARKS: Final = "x-kubernetes-"


def swagger_document(components: Mapping[str, JSONObject], version: str) -> JSONObject:
    """Return the document over schemas of OpenAPI v3, as JSON.

    >>> found = swagger_document({"a": {"properties": {"b": {"$ref": "#/components/schemas/a"}}}}, "1.35")
    >>> found["definitions"]["a"]["properties"]
    {'b': {'$ref': '#/definitions/a'}}
    """
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"v{version}"},
        "paths": {},
        "definitions": {name: _schema(schema) for name, schema in sorted(components.items())},
    }


def _schema(schema: JSONObject) -> JSONObject:
    """Return a schema as version 2 has it: plain references, and one type for integers and texts."""
    found: JSONObject = {key: schema[key] for key in _SCALARS if key in schema}
    found |= {key: value for key, value in schema.items() if key.startswith(_MARKS)}
    reference = schema.get("$ref")
    for part in schema.get("allOf") or ():
        reference = reference or part.get("$ref")
    if reference is not None:
        return {"$ref": reference.replace(_V3, _V2), **{key: found[key] for key in ("description",) if key in found}}
    if schema.get("oneOf") or schema.get("anyOf") or schema.get("x-kubernetes-int-or-string"):
        types = {part.get("type") for part in schema.get("oneOf") or ()}
        return {**found, **({"type": "string"} if "number" in types else _INT_OR_STRING)}
    if "properties" in schema:
        found["properties"] = {name: _schema(field) for name, field in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        value = schema.get(key)
        if isinstance(value, dict):
            found[key] = _schema(value)
        elif value is not None:
            found[key] = value
    return found


def encode_swagger(document: JSONObject) -> bytes:
    r"""Return a document as protobuf.

    >>> encode_swagger(swagger_document({}, "1.35"))
    b'\n\x032.0\x12\x13\n\nKubernetes\x12\x05v1.35B\x00J\x00'
    """
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = _encode_named(1, document["definitions"])
    return _text(1, document["swagger"]) + write_field(2, info) + write_field(8, b"") + write_field(9, definitions)


def _encode_schema(schema: JSONObject) -> bytes:
    found = b""
    for number, key in ((1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")):
        if schema.get(key):
            found += _text(number, schema[key])
    if "default" in schema:
        found += write_field(5, _any(schema["default"]))
    found += b"".join(_text(19, name) for name in schema.get("required") or ())
    found += b"".join(write_field(20, _any(value)) for value in schema.get("enum") or ())
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        found += write_field(21, write_field(1, _encode_schema(more)))
    elif isinstance(more, bool):
        found += write_field(21, bytes((2 << 3, more)))
    if "type" in schema:
        found += write_field(22, _text(1, schema["type"]))
    if isinstance(schema.get("items"), dict):
        found += write_field(23, write_field(1, _encode_schema(schema["items"])))
    if "properties" in schema:
        found += write_field(25, _encode_named(1, schema["properties"]))
    for key, value in schema.items():
        if key.startswith(_MARKS):
            found += write_field(31, _text(1, key) + write_field(2, _any(value)))
    return found


def _encode_named(number: int, schemas: Mapping[str, JSONObject]) -> bytes:
    return b"".join(
        write_field(number, _text(1, name) + write_field(2, _encode_schema(schema))) for name, schema in schemas.items()
    )


def _any(value: JSON) -> bytes:
    """Return a value of any type, which is written as YAML; JSON is that as well."""
    return write_field(2, orjson.dumps(value))


def _text(number: int, text: str) -> bytes:
    return write_field(number, text.encode())
