"""Tests of `schema.pruning`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.pruning import compile_defaults, compile_pruning
from pyverno.kube.json import JSON, JSONObject

TEXT: JSONObject = {"type": "string"}
KEEP = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize(
    ("schema", "value", "kept", "dropped"),
    [
        ({"properties": {"a": TEXT}}, {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
        ({KEEP: True}, {"a": {"b": 1}}, {"a": {"b": 1}}, []),
        ({KEEP: True, "properties": {"a": {"properties": {}}}}, {"a": {"b": 1}, "c": 1}, {"a": {}, "c": 1}, ["a.b"]),
        ({"additionalProperties": {"properties": {"a": TEXT}}}, {"k": {"a": "x", "b": 1}}, {"k": {"a": "x"}}, ["k.b"]),
        ({"additionalProperties": True}, {"k": {"b": 1}}, {"k": {"b": 1}}, []),
        ({"items": {"properties": {"a": TEXT}}}, [{"a": "x"}, {"b": 1}], [{"a": "x"}, {}], ["[1].b"]),
        ({"x-kubernetes-embedded-resource": True}, {"kind": "X", "spec": 1}, {"kind": "X"}, ["spec"]),
        ({"properties": {}}, "x", "x", []),
    ],
)
def test_unknown_fields_go(schema: JSONObject, value: JSON, kept: JSON, dropped: list[str]) -> None:
    """Their paths are reported; values of a wrong type are left to validation."""
    problems: list[str] = []
    assert kept == compile_pruning(schema)(value, None, problems)
    assert [f'unknown field "{field}"' for field in dropped] == problems


def test_a_resource_keeps_what_it_is() -> None:
    """Version, kind and metadata are in no schema."""
    body = {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "b": 1}
    pruned = compile_pruning({"properties": {}}, is_root=True)(body, None, [])
    assert ["apiVersion", "kind", "metadata"] == list(pruned)


@pytest.mark.parametrize(
    ("schema", "value", "filled"),
    [
        ({"properties": {"a": {"default": 1}}}, {}, {"a": 1}),
        ({"properties": {"a": {"default": 1}}}, {"a": None}, {"a": 1}),
        ({"properties": {"a": {"default": 1, "nullable": True}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": TEXT}}, {"a": None}, {}),
        ({"properties": {"a": {"properties": {"b": {"default": 1}}}}}, {}, {}),
        ({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}}, {}, {"a": {"b": 1}}),
        ({"items": {"properties": {"b": {"default": 1}}}}, [{}], [{"b": 1}]),
        ({"additionalProperties": {"properties": {"b": {"default": 1}}}}, {"k": {}}, {"k": {"b": 1}}),
    ],
)
def test_defaults_fill_what_is_absent(schema: JSONObject, value: JSON, filled: JSON) -> None:
    """A null counts as absent unless the schema allows it; once more changes nothing."""
    fill = compile_defaults(schema)
    assert fill is not None
    assert filled == fill(value)
    assert filled == fill(filled)
