"""Conditions that do not depend on the request."""

from __future__ import annotations

import pytest

from tests.support.linting import cel_policy, fixed, found, policy, rule


def precondition(key: str, value: str = "CREATE") -> str:
    """Return a policy with a precondition, whose key is in line 11."""
    condition = f"preconditions:\n  all:\n  - key: {key}\n    operator: Equals\n    value: {value}\n"
    return policy(rule(f"{condition}validate: {{message: m, deny: {{}}}}"))


def test_a_variable_without_braces_is_found_and_corrected() -> None:
    """Plain text that begins with a brace needs quotes; quoted text keeps its own."""
    message = "is a text and no variable: write `{{ request.operation }}`"
    assert [f"11:14 `request.operation` {message}"] == found(precondition("request.operation"), "PV402")
    assert precondition('"{{ request.operation }}"') == fixed(precondition("request.operation"), "PV402")
    assert precondition("'{{ request.operation }}'") == fixed(precondition("'request.operation'"), "PV402")


@pytest.mark.parametrize(("value", "outcome"), [("a", "true"), ("b", "false")])
def test_a_constant_precondition_is_found_with_its_outcome(value: str, outcome: str) -> None:
    """The engine evaluates it."""
    expected = f"11:9 this condition is always {outcome}: neither key nor value has a variable"
    assert [expected] == found(precondition("a", value), "PV402")


VARIABLE = '"{{ request.operation }}"'


@pytest.mark.parametrize(("key", "value"), [(VARIABLE, "CREATE"), ("a", VARIABLE)])
def test_a_condition_with_a_variable_is_not_reported(key: str, value: str) -> None:
    """On either side."""
    assert [] == found(precondition(key, value), "PV402")


def test_a_constant_condition_of_deny_is_not_reported() -> None:
    """A rule may deny everything on purpose."""
    body = "validate: {message: m, deny: {conditions: {all: [{key: a, operator: Equals, value: a}]}}}"
    assert [] == found(policy(rule(body)), "PV402")


def test_a_constant_match_condition_is_found() -> None:
    """In policies in CEL."""
    text = cel_policy("matchConditions: [{name: none, expression: 'false'}]\nvalidations: [{expression: 'true'}]")
    assert ["8:46 the match condition `none` matches nothing"] == found(text, "PV402")
