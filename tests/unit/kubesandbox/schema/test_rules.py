"""Tests of `schema.rules`."""

from __future__ import annotations

import pytest

from kubesandbox.schema.correlation import UNRELATED
from kubesandbox.schema.rules import compile_rules, rule_problems
from pyverno.kube.json import JSON, JSONObject

INT: JSONObject = {"type": "integer"}
TEXT: JSONObject = {"type": "string"}


def said(spec: JSONObject, value: JSON, old: JSON = UNRELATED) -> list[str]:
    """Return the messages of rules for a value in `spec`."""
    rules = compile_rules({"type": "object", "properties": {"spec": spec}}, (1, 35))
    assert rules is not None
    older = old if old is UNRELATED else {"spec": old}
    return [str(error) for error in rules({"spec": value}, older)]


def with_rule(schema: JSONObject, rule: str, **more: object) -> JSONObject:
    """A schema with one rule."""
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more}]}


def of(**properties: JSONObject) -> JSONObject:
    """An object with properties."""
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (with_rule(of(n=INT), "self.n > 1"), {"n": 2}, []),
        (with_rule(of(n=INT), "self.n > 1"), {"n": 1}, ["spec: Invalid value: failed rule: self.n > 1"]),
        (with_rule(of(n=INT), "self.n > 1", message="no"), {"n": 1}, ["spec: Invalid value: no"]),
        (
            with_rule(of(n=INT), "self.n > 1", messageExpression="'n is ' + string(self.n)"),
            {"n": 1},
            ["spec: Invalid value: n is 1"],
        ),
        (
            with_rule(of(n=INT), "self.n > 1", message="no", reason="FieldValueForbidden"),
            {"n": 1},
            ["spec: Forbidden: no"],
        ),
        (with_rule(of(n=INT), "self.n > 1", message="no", fieldPath=".n"), {"n": 1}, ["spec.n: Invalid value: no"]),
        (with_rule(INT, "self > 1"), 1, ["spec: Invalid value: 1: failed rule: self > 1"]),
        (
            of(a={"type": "array", "items": with_rule(TEXT, "self != 'x'")}),
            {"a": ["y", "x"]},
            ["spec.a[1]: Invalid value: \"x\": failed rule: self != 'x'"],
        ),
        (
            {"type": "object", "additionalProperties": with_rule(TEXT, "self != 'x'")},
            {"k": "x"},
            ["spec[k]: Invalid value: \"x\": failed rule: self != 'x'"],
        ),
        (
            with_rule(of(**{"a-b": INT}), "self.a__dash__b > 1"),
            {"a-b": 1},
            ["spec: Invalid value: failed rule: self.a__dash__b > 1"],
        ),
        (
            with_rule(of(t={"type": "string", "format": "date-time"}), "self.t > timestamp('2000-01-01T00:00:00Z')"),
            {"t": "1999-01-01T00:00:00Z"},
            ["spec: Invalid value: failed rule: self.t > timestamp('2000-01-01T00:00:00Z')"],
        ),
        (
            with_rule(of(d={"type": "number"}), "self.d > 1.5"),
            {"d": 1},
            ["spec: Invalid value: failed rule: self.d > 1.5"],
        ),
        (
            with_rule(of(n=INT), "self.n > 1"),
            {},
            ['spec: Invalid value: "object": no such key: n evaluating rule: self.n > 1'],
        ),
        (
            with_rule(of(n=INT), "self.m > 1"),
            {"n": 1},
            [
                'spec: Invalid value: "object": rule compile error: compilation failed: '
                "ERROR: <input>:1:5: undefined field 'm'\n | self.m > 1\n | ....^"
            ],
        ),
    ],
)
def test_a_failing_rule_is_reported(schema: JSONObject, value: JSON, expected: list[str]) -> None:
    """The error has the rule's message and path; values of objects and lists are not shown."""
    assert expected == said(schema, value)


def test_a_transition_needs_an_older_value() -> None:
    """A rule with `optionalOldSelf` also runs without an old value."""
    fixed = of(a=with_rule(TEXT, "self == oldSelf", message="fixed"))
    assert [] == said(fixed, {"a": "x"})
    assert [] == said(fixed, {"a": "x"}, {"a": "x"})
    assert ['spec.a: Invalid value: "y": fixed'] == said(fixed, {"a": "y"}, {"a": "x"})
    optional = of(a=with_rule(TEXT, "oldSelf.hasValue() || self == 'x'", message="first", optionalOldSelf=True))
    assert ['spec.a: Invalid value: "y": first'] == said(optional, {"a": "y"})
    assert [] == said(optional, {"a": "y"}, {"a": "x"})


def test_what_was_wrong_before_and_did_not_change_is_let_through() -> None:
    """Transition rules always run."""
    assert [] == said(with_rule(of(n=INT), "self.n > 1"), {"n": 1}, {"n": 1})


def test_a_rule_that_costs_too_much_ends_the_evaluation() -> None:
    """The rules after it do not run."""
    numbers = {"type": "array", "items": INT}
    schema = with_rule(of(a=numbers), "self.a.all(x, self.a.all(y, self.a.all(z, x + y + z >= 0)))")
    schema["x-kubernetes-validations"].append({"rule": "false"})
    errors = said(schema, {"a": list(range(200))})
    assert 1 == len(errors)
    assert "call cost exceeds limit for rule" in errors[0]


def test_rules_that_do_not_compile_are_found_before_any_object() -> None:
    """The error has the index of the rule."""
    schema = of(n=INT) | {"x-kubernetes-validations": [{"rule": "self.n > 1"}, {"rule": "self.n"}]}
    assert [1] == [index for index, _ in rule_problems(schema, (1, 35))]
