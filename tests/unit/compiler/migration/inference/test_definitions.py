"""Definitions of kinds that only rules and examples show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pyverno.compiler.migration.inference import infer_definitions
from pyverno.kube.json import JSON, JSONObject
from pyverno.policy.kinds import KNOWN_KINDS


def policy(*rules: JSONObject, kinds: Sequence[str] = ("example.com/v1/Widget",)) -> JSONObject:
    """Return a ClusterPolicy."""
    match = {"any": [{"resources": {"kinds": [*kinds]}}]}
    return {"kind": "ClusterPolicy", "spec": {"rules": [{"name": "r", "match": match, **rule} for rule in rules]}}


def properties(*rules: JSONObject, examples: Sequence[JSONObject] = ()) -> Any:
    """Return the fields of the one kind that rules show."""
    (found,) = infer_definitions([policy(*rules)], KNOWN_KINDS, examples)
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def test_a_kind_has_a_definition_with_the_fields_of_all_its_rules() -> None:
    """Names of the resource and the scope are guessed."""
    rules: list[JSONObject] = [
        {"validate": {"pattern": {"spec": {"mode": "STRICT"}}}},
        {"validate": {"anyPattern": [{"spec": {"replicas": ">1"}}]}},
    ]
    (found,) = infer_definitions([policy(*rules)], KNOWN_KINDS)
    schema = {"mode": {"type": "string"}, "replicas": {"type": "integer"}}
    names = {"kind": "Widget", "plural": "widgets"}
    version = found["spec"]["versions"][0]
    assert ("example.com", names, "Namespaced") == tuple(found["spec"][key] for key in ("group", "names", "scope"))
    assert {"spec": {"type": "object", "properties": schema}} == version["schema"]["openAPIV3Schema"]["properties"]


@pytest.mark.parametrize("kind", ["Pod", "Widget", "*", "example.com/v1/*", "*/Widget", "example.com/v1/Widget/status"])
def test_other_kinds_have_none(kind: str) -> None:
    """A known kind needs no definition, and a kind without a group does not identify a resource."""
    assert () == infer_definitions([policy({"validate": {}}, kinds=[kind])], KNOWN_KINDS)


CONDITION = {"operator": "Equals", "value": 3}


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ({"preconditions": {"all": [{"key": "{{ request.object.a }}", **CONDITION}]}}, "integer"),
        ({"preconditions": [{"any": [{"key": "{{ request.object.a }}", **CONDITION}]}]}, "integer"),
        ({"preconditions": {"all": [{"key": 3, "operator": "Equals", "value": "{{request.object.a}}"}]}}, "integer"),
        (
            {"preconditions": {"all": [{"key": "{{ request.object.a }}", "operator": "GreaterThan", "value": "1Gi"}]}},
            "string",
        ),
        (
            {"preconditions": {"all": [{"key": "{{ request.object.a }}", "operator": "GreaterThan", "value": 5}]}},
            "integer",
        ),
        (
            {"preconditions": {"all": [{"key": "{{ request.object.a }}", "operator": "AnyIn", "value": [1, 2]}]}},
            "integer",
        ),
        (
            {
                "context": [{"name": "v", "variable": {"jmesPath": "request.object.a", "default": False}}],
                "validate": {},
            },
            "boolean",
        ),
        (
            {
                "context": [{"name": "v", "variable": {"value": "{{ request.object }}", "jmesPath": "a"}}],
                "validate": {"deny": {"conditions": {"any": [{"key": "{{ v }}", **CONDITION}]}}},
            },
            "integer",
        ),
        ({"mutate": {"patchStrategicMerge": {"+(a)": True}}}, "boolean"),
    ],
)
def test_each_part_of_a_rule_shows_types(rule: JSONObject, schema: JSON) -> None:
    """Preconditions, deny, context and patches."""
    assert {"a": {"type": schema}} == properties(rule)


def test_foreach_reads_its_elements() -> None:
    """Patterns and conditions of a loop are those of the elements."""
    entry = {
        "list": "request.object.spec.steps",
        "preconditions": {"all": [{"key": "{{ element.retries }}", **CONDITION}]},
        "pattern": {"image": "?*"},
    }
    steps = {"type": "object", "properties": {"image": {"type": "string"}, "retries": {"type": "integer"}}}
    found = properties({"validate": {"foreach": [entry]}})
    assert {"type": "array", "items": steps} == found["spec"]["properties"]["steps"]


def test_examples_show_the_true_types() -> None:
    """A field that a rule compares with a text may hold a number."""
    example: JSONObject = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"mode": 3}}
    rule: JSONObject = {"validate": {"pattern": {"spec": {"mode": "?*"}}}}
    assert {"type": "integer"} == properties(rule, examples=[example])["spec"]["properties"]["mode"]


@pytest.mark.parametrize("text", ["{{ request.object.( }}", "{{ a"])
def test_expressions_that_cannot_be_read_show_nothing(text: str) -> None:
    """The compiler reports them."""
    rule: JSONObject = {"preconditions": {"all": [{"key": text, **CONDITION}]}}
    assert {} == properties(rule)
