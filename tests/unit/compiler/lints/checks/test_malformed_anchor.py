"""Keys that look like anchors and are none."""

from __future__ import annotations

import pytest

from tests.support.linting import fixed, found, policy, rule


def key(text: str) -> str:
    """Return a policy with a key in its pattern, which is at column 9 of line 12."""
    return policy(rule(f"validate:\n  message: m\n  pattern:\n    spec:\n      {text}: false"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("(=hostPID)", "=(hostPID)"),
        ("(^containers)", "^(containers)"),
        ("x(hostPID)", "X(hostPID)"),
        ('"!(hostPID)"', "X(hostPID)"),
        ("==(hostPID)", "=(hostPID)"),
        ("= (hostPID)", "=(hostPID)"),
    ],
)
def test_an_almost_anchor_is_found_and_corrected(text: str, meant: str) -> None:
    """The message names the anchor that was meant."""
    plain = text.strip('"')
    expected = f"13:11 `{plain}` is no anchor but the name of a field: did you mean `{meant}`?"
    assert [expected] == found(key(text), "PV301")
    assert key(text).replace(plain, meant) == fixed(key(text), "PV301")


@pytest.mark.parametrize("text", ["(hostPID", "=(hostPID", "hostPID)"])
def test_a_missing_parenthesis_is_found(text: str) -> None:
    """It is not corrected: the author may have meant either."""
    assert [f"13:11 `{text}` is no anchor but the name of a field: a parenthesis is missing"] == found(
        key(text), "PV301"
    )


@pytest.mark.parametrize("text", ["hostPID", "(hostPID)", "=(hostPID)", "X(hostPID)", "<(hostPID)"])
def test_anchors_and_fields_are_not_reported(text: str) -> None:
    """Every anchor of the language."""
    assert [] == found(key(text), "PV301")
