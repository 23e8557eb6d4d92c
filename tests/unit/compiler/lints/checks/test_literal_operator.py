"""Operators that are taken literally."""

from __future__ import annotations

import pytest

from tests.support.linting import fixed, found, policy, rule


def leaf(text: str) -> str:
    """Return a policy with a value in its pattern."""
    return policy(rule(f"validate:\n  message: m\n  pattern:\n    metadata:\n      name: {text}"))


@pytest.mark.parametrize(
    ("text", "right", "message"),
    [
        ('"=>2"', '">=2"', "18 `=>` is no operator and is taken literally: write `>=`"),
        ('"=<2"', '"<=2"', "18 `=<` is no operator and is taken literally: write `<=`"),
        ("'!=x'", "'!x'", "18 `!=` is no operator and is taken literally: write `!`"),
        ('"== x"', '" x"', "18 `==` is no operator and is taken literally: leave it out to compare for equality"),
        ("a || b", "a | b", "19 `||` is no operator: write `|`"),
        ('">1 && <3"', '">1 & <3"', "21 `&&` is no operator: write `&`"),
    ],
)
def test_an_operator_of_another_language_is_found_and_corrected(text: str, right: str, message: str) -> None:
    """At its character."""
    assert [f"13:{message}"] == found(leaf(text), "PV302")
    assert leaf(right) == fixed(leaf(text), "PV302")


@pytest.mark.parametrize(
    "text", ['">=2"', '"!x"', '"1-5"', "a | b", '"{{ request.object.a || request.object.b }}"', "a=b", '"=abc"']
)
def test_operators_and_texts_are_not_reported(text: str) -> None:
    """Expressions in braces have operators of their own."""
    assert [] == found(leaf(text), "PV302")


def test_a_comparison_in_the_value_of_equals_is_found() -> None:
    """Conditions have operators for that."""
    condition = "{key: '{{ request.object.a }}', operator: Equals, value: '>5'}"
    body = f"validate: {{message: m, deny: {{conditions: {{all: [{condition}]}}}}}}"
    [line] = found(policy(rule(body)), "PV302")
    assert (
        "`Equals` compares with the text `>5`: use the operator `GreaterThan`, `LessThan` or one of their kin" in line
    )
