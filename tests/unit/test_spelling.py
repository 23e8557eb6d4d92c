"""Suggestions for misspelt words."""

from __future__ import annotations

import pytest

from pyverno.spelling import did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("ruels", ("rules", "admission"), "rules"),
        ("zzz", ("rules",), ""),
        ("", ("rules",), ""),
        ("DENY", ("Deny", "Audit"), "Deny"),
        ("--fial-on", ("--fail-on", "--f"), "--fail-on"),
        ("--x", ("--y", "--z"), ""),  # the dashes are no likeness
        ("rules" * 17, ("rules" * 16,), ""),
    ],
)
def test_the_nearest_word_is_suggested(word: str, known: tuple[str, ...], expected: str) -> None:
    """Case and dashes do not count; a long word is not compared."""
    assert expected == nearest(word, known)
    assert (f": did you mean `{expected}`?" if expected else "") == did_you_mean(word, known)


@pytest.mark.parametrize(
    ("word", "known", "expected"), [("deploymnet", "Deployment", "Deployment"), ("Foo", "Food", ""), ("Tab", "Tap", "")]
)
def test_a_certain_word_is_almost_equal(word: str, known: str, expected: str) -> None:
    """Words of three letters are too near to each other."""
    assert expected == nearest(word, [known], is_certain=True)
