"""Tests of `schema.structural`; what definitions are refused for is in the table of `test_customresources`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.structural import schema_errors
from pyverno.kube.json import JSONObject

KEEP = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize(
    "schema",
    [
        {KEEP: True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]},
        {"type": "object", "x-kubernetes-embedded-resource": True, KEEP: True},
        {"type": "object", "properties": {"b": {"type": "string"}}, "oneOf": [{"required": ["b"]}]},
        {"type": "string", "default": "x", "enum": ["x"]},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ],
)
def test_a_structural_schema_is_taken(schema: JSONObject) -> None:
    """With the exceptions for int-or-string, and the keywords that value validation allows."""
    whole = {"type": "object", "properties": {"a": schema}}
    assert [] == list(map(str, schema_errors(whole, "s", (1, 35))))


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "object", "$ref": "x"}, "s.properties[a].$ref: Forbidden: $ref is not supported"),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            "s.properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields",
        ),
        (
            {"type": "string", "x-kubernetes-embedded-resource": True, KEEP: True},
            's.properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity "
            "becomes quadratic",
        ),
        (
            {
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "s.properties[a].items.properties[k].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            {"type": "string", "x-kubernetes-list-type": "set"},
            's.properties[a].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: JSONObject, error: str) -> None:
    """The error has the path of the offending part."""
    whole = {"type": "object", "properties": {"a": schema}}
    assert error in list(map(str, schema_errors(whole, "s", (1, 35))))
