"""Kyverno's wildcards."""

from fnmatch import fnmatchcase
from itertools import product

import pytest

from pyverno.kube.wildcard import compile_wildcard, first_match, has_wildcard, match, match_either, separate_wildcards


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("a*b", "a/x/b", True),
        ("a?", "a", False),
        ("a*a", "a", False),
        ("a.b", "axb", False),
        ("[a]", "a", False),
        ("*?", "", False),
        ("ng*", "nginx", True),
        ("?é*", "aéx", True),
    ],
)
def test_star_and_question_mark_are_the_only_special_characters(pattern, text, expected):
    """The whole text has to fit."""
    assert expected is match(pattern, text)
    assert expected is compile_wildcard(pattern)(text)


def test_every_shape_of_pattern_agrees_with_a_known_matcher():
    """All patterns up to four characters against all texts up to four."""
    texts = ["".join(part) for size in range(5) for part in product("ab", repeat=size)]
    for size in range(5):
        for parts in product("a*?b", repeat=size):
            pattern = "".join(parts)
            test = compile_wildcard(pattern)
            assert [fnmatchcase(text, pattern) for text in texts] == [test(text) for text in texts]


def test_many_stars_take_no_exponential_time():
    """The classic trap for backtracking matchers."""
    assert not match("*a" * 200 + "b", "a" * 20_000)


def test_small_tools():
    """Either direction, first pair, split."""
    assert match_either("a1", "a*")
    assert ("b*", "b1") == first_match(["a*", "b*"], ["b1"])
    assert first_match([], ["b1"]) is None
    assert (("a*",), ("b",)) == separate_wildcards(["a*", "b"])
    assert (True, False) == (has_wildcard("?"), has_wildcard("x"))
