"""Tests of `schema.listtypes`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.listtypes import compile_list_types
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError

SET: JSONObject = {"x-kubernetes-list-type": "set"}
MAP: JSONObject = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (SET, ["a", "b"], []),
        (SET, ["a", "b", "a", "a"], ['x[2]: Duplicate value: "a"']),
        (SET, [{"a": 1}, {"a": 1}], ['x[1]: Duplicate value: {"a":1}']),
        (MAP, [{"k": 1, "v": 1}, {"k": 1, "v": 2}], ['x[1]: Duplicate value: {"k":1}']),
        (MAP, [{}, {}], ["x[1]: Duplicate value: {}"]),
        (MAP, ["a"], ['x[0]: Invalid value: "a": must be an object for an array of list-type map']),
        ({"properties": {"s": SET}}, {"s": [1, 1]}, ["x.s[1]: Duplicate value: 1"]),
        ({"additionalProperties": SET}, {"s": [1, 1]}, ["x[s][1]: Duplicate value: 1"]),
        ({"items": SET}, [[1, 1]], ["x[0][1]: Duplicate value: 1"]),
    ],
)
def test_nothing_occurs_twice_in_a_set_or_map(schema: JSONObject, value: JSON, expected: list[str]) -> None:
    """Only the second appearance is reported."""
    check = compile_list_types(schema)
    assert check is not None
    errors: list[FieldError] = []
    check(value, "x", errors)
    assert expected == list(map(str, errors))


def test_a_schema_without_sets_needs_no_check() -> None:
    """Plain lists may repeat values."""
    assert compile_list_types({"properties": {"a": {"items": {"type": "string"}}}}) is None
