"""Bounds that nothing is greater or less than."""

from __future__ import annotations

import pytest

from tests.support.linting import found, policy, rule


def leaf(text: str) -> str:
    """Return a policy with a value in its pattern."""
    return policy(rule(f"validate:\n  message: m\n  pattern:\n    metadata:\n      name: {text}"))


def condition(operator: str, value: str) -> str:
    """Return a policy that denies by one condition."""
    written = f"{{key: '{{{{ request.object.a }}}}', operator: {operator}, value: {value}}}"
    return policy(rule(f"validate: {{message: m, deny: {{conditions: {{all: [{written}]}}}}}}"))


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ('"<=1GB"', "18 `<=1GB` is true for no value: `1GB` is no number, quantity or duration"),
        ('"a | >5 & <many"', "27 `<many` is true for no value: `many` is no number, quantity or duration"),
        ('">>7"', "18 `>>7` is true for no value: `>7` is no number, quantity or duration"),
    ],
)
def test_a_bound_that_is_no_amount_is_found_in_patterns(text: str, finding: str) -> None:
    """At its character, whatever alternatives stand beside it."""
    assert [f"13:{finding}"] == found(leaf(text), "PV303")


@pytest.mark.parametrize(
    "text", ['">=2"', '"<1.5Gi"', '"> 1h30m"', '">-5"', '"!>x"', '"1-5"', '"=>x"', '">"', '">{{ request.object.a }}"']
)
def test_amounts_texts_and_variables_are_no_findings(text: str) -> None:
    """What only looks like a comparison is a text."""
    assert [] == found(leaf(text), "PV303")


@pytest.mark.parametrize(
    ("operator", "value", "kinds"),
    [
        ("GreaterThan", "lots", "number, quantity, duration or version"),
        ("LessThanOrEquals", "[1]", "number, quantity, duration or version"),
        ("LessThan", "true", "number, quantity, duration or version"),
        ("DurationLessThan", "1Gi", "number or duration"),
    ],
)
def test_a_bound_that_is_no_amount_is_found_in_conditions(operator: str, value: str, kinds: str) -> None:
    """Versions compare by the operators that are not for durations."""
    [line] = found(condition(operator, value), "PV303")
    assert line.endswith(f"is false for every key: the value is no {kinds}")


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("GreaterThan", "5"),
        ("GreaterThan", "1e3"),
        ("GreaterThan", "'1.2.3'"),
        ("GreaterThan", "10Mi"),
        ("DurationGreaterThan", "1h"),
        ("DurationGreaterThan", "3600"),
        ("LessThan", "'{{ request.object.b }}'"),
        ("Equals", "lots"),
    ],
)
def test_amounts_and_other_operators_are_no_findings_in_conditions(operator: str, value: str) -> None:
    """`Equals` compares anything."""
    assert [] == found(condition(operator, value), "PV303")
