"""Tests of `schema.checking`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.checking import compile_check
from kubesandbox.schema.correlation import UNRELATED
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError


def said(schema: JSONObject, value: JSON, old: JSON = UNRELATED) -> list[str]:
    """Return the errors of a value at the path `s`."""
    errors: list[FieldError] = []
    compile_check(schema)(value, old, "s", errors)
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer"}, "x", ['s: Invalid value: "string": s in body must be of type integer: "string"']),
        ({"type": "integer"}, 1.0, []),
        ({"type": "integer"}, 1.5, ['s: Invalid value: "number": s in body must be of type integer: "number"']),
        ({"type": "number"}, 1, []),
        ({"type": "string"}, None, ['s: Invalid value: "null": s in body must be of type string: "null"']),
        ({"type": "string", "nullable": True}, None, []),
        ({"type": "boolean"}, 1, ['s: Invalid value: "integer": s in body must be of type boolean: "integer"']),
        ({"x-kubernetes-int-or-string": True}, True,
         ['s: Invalid value: "boolean": s in body must be of type integer,string: "boolean"']),
        ({"enum": ["a", 1]}, "b", ['s: Unsupported value: "b": supported values: "a", "1"']),
        ({"maxLength": 2}, "abc", ["s: Too long: may not be more than 2 bytes"]),
        ({"minLength": 2}, "a", ['s: Invalid value: "a": s in body should be at least 2 chars long']),
        ({"pattern": "^[a-z]+$"}, "A", ["s: Invalid value: \"A\": s in body should match '^[a-z]+$'"]),
        ({"type": "string", "format": "date"}, "x", ['s: Invalid value: "x": s in body must be of type date: "x"']),
        ({"type": "string", "format": "nonsense"}, "x", []),
        ({"minimum": 1}, 0, ["s: Invalid value: 0: s in body should be greater than or equal to 1"]),
        ({"minimum": 1, "exclusiveMinimum": True}, 1, ["s: Invalid value: 1: s in body should be greater than 1"]),
        ({"maximum": 1.5}, 2, ["s: Invalid value: 2: s in body should be less than or equal to 1.5"]),
        ({"multipleOf": 5}, 7, ["s: Invalid value: 7: s in body should be a multiple of 5"]),
        ({"maxItems": 1}, [1, 2], ["s: Too many: 2: must have at most 1 item"]),
        ({"minItems": 1}, [], ["s: Invalid value: 0: s in body should have at least 1 items"]),
        ({"items": {"type": "string"}}, ["a", 1],
         ['s[1]: Invalid value: "integer": s[1] in body must be of type string: "integer"']),
        ({"maxProperties": 1}, {"a": 1, "b": 2}, ["s: Too many: 2: must have at most 1 item"]),
        ({"required": ["a"]}, {}, ["s.a: Required value"]),
        ({"properties": {"a": {"minimum": 1}}}, {"a": 0},
         ["s.a: Invalid value: 0: s.a in body should be greater than or equal to 1"]),
        ({"additionalProperties": {"minimum": 1}}, {"a": 0},
         ["s.a: Invalid value: 0: s.a in body should be greater than or equal to 1"]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {},
         ['<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found none valid',
          "s.a: Required value"]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": 1, "b": 1},
         ['<nil>: Invalid value: "": "s" must validate one and only one schema (oneOf). Found 2 valid alternatives']),
        ({"anyOf": [{"minimum": 1}]}, 0,
         ['<nil>: Invalid value: "": "s" must validate at least one schema (anyOf)',
          "s: Invalid value: 0: s in body should be greater than or equal to 1"]),
        ({"allOf": [{"minimum": 1}, {}]}, 0,
         ["s: Invalid value: 0: s in body should be greater than or equal to 1",
          '<nil>: Invalid value: "": "s" must validate all the schemas (allOf)']),
        ({"not": {"required": ["a"]}}, {"a": 1},
         ['<nil>: Invalid value: "": "s" must not validate the schema (not)']),
    ],
)  # fmt: skip
def test_a_value_is_judged_in_the_words_of_an_api_server(schema: JSONObject, value: JSON, expected: list[str]) -> None:
    """Errors for type, limits, enum and fields have the API server's texts."""
    assert expected == said(schema, value)


def test_what_did_not_change_is_let_through() -> None:
    """A rule that came later does not lock objects that were there before it."""
    schema = {"properties": {"a": {"minimum": 1}, "b": {"minimum": 1}}}
    old = {"a": 0, "b": 1}
    assert [] == said(schema, old, old)
    assert [] == said(schema, {"a": 0, "b": 2}, old)
    assert ["s.b"] == [error.partition(":")[0] for error in said(schema, {"a": 0, "b": 0}, old)]


def test_elements_of_a_plain_list_are_always_new() -> None:
    """Its elements have no identity."""
    schema = {"items": {"minimum": 1}}
    assert ["s[0]"] == [error.partition(":")[0] for error in said(schema, [0, 2], [0, 1])]
