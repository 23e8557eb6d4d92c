"""Braces that do not enclose a variable."""

from __future__ import annotations

import pytest

from tests.support.linting import found, policy, rule


def message(text: str) -> str:
    """Return a policy with a message, which begins at column 26 of line 9."""
    return policy(rule(f"validate: {{message: '{text}', pattern: {{metadata: {{name: '?*'}}}}}}"))


@pytest.mark.parametrize(
    ("text", "column"),
    [("x {{ request.object.metadata.name }", 28), ("{{ a {{ request.name }}", 26), ("{{request.name", 26)],
)
def test_an_open_variable_is_found_at_its_braces(text: str, column: int) -> None:
    """Inner variables are closed first."""
    assert [f"9:{column} `{{{{` is never closed by `}}}}`, so this is text and no variable"] == found(
        message(text), "PV201"
    )


def test_a_single_brace_before_a_variable_is_found() -> None:
    """The two closing braces show that two opening ones were intended."""
    assert ["9:28 one `{` is missing before this variable, so it is text"] == found(
        message("x { request.object.metadata.name }}"), "PV201"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{{ request.object.metadata.name }}",
        "\\\\{{ not a variable",
        "{a: {b: 1}}",
        "{{ request.object.{{ request.name }} }}",
        "a { b } c",
    ],
)
def test_closed_escaped_and_other_braces_are_not_reported(text: str) -> None:
    """JSON in a text closes two braces at once."""
    assert [] == found(message(text.replace("\\\\", "\\")), "PV201")
