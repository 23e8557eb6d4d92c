"""Calls of JMESPath functions that do not exist."""

from __future__ import annotations

import pytest

from tests.support.linting import found, policy, rule


def condition(key: str) -> str:
    """Return a policy with a condition."""
    head = "validate:\n  message: m\n  deny:\n    conditions:\n      all:\n"
    return policy(rule(f"{head}      - key: {key}\n        operator: Equals\n        value: 1"))


def test_a_misspelt_function_is_found_at_its_name() -> None:
    """The nearest function is offered."""
    text = condition('"{{ lenght(request.object.spec.containers) }}"')
    assert ["14:22 there is no function `lenght`: did you mean `length`?"] == found(text, "PV202")


def test_the_place_is_right_in_texts_of_several_lines() -> None:
    """Blocks keep their lines."""
    text = condition("|\n          {{ length(\n            to_uper(request.object.kind)) }}")
    assert ["16:17 there is no function `to_uper`: did you mean `to_upper`?"] == found(text, "PV202")


@pytest.mark.parametrize(
    "key",
    [
        '"{{ length(request.object.spec.containers) }}"',
        "\"{{ contains(request.object.kind, 'f(x)') }}\"",
        '"{{ request.object.kind }} (all)"',
    ],
)
def test_known_functions_and_literals_are_not_reported(key: str) -> None:
    """A parenthesis in a literal calls nothing."""
    assert [] == found(condition(key), "PV202")
