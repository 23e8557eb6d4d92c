"""Kyverno's wildcards."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyverno.errors import BudgetExceededError
from pyverno.kube.wildcard import (
    _Piece,
    compile_wildcard,
    has_wildcard,
    match,
    match_price,
)
from tests.support.operations import MOST_GROWTH, growth


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


def test_a_text_with_a_star_or_a_question_mark_has_a_wildcard():
    """Nothing else is one."""
    assert (True, False) == (has_wildcard("?"), has_wildcard("x"))


@given(st.text("aab*??", max_size=9), st.text("aaab", max_size=30), st.integers(1, 70))
@settings(max_examples=300, deadline=None)
def test_many_places_tried_at_once_are_the_places_tried_one_by_one(pattern: str, text: str, block: int) -> None:
    """Blocks of any size give what a regular expression gives."""
    piece = _Piece(pattern.replace("*", ""))
    form = re.compile(re.escape(pattern.replace("*", "")).replace(r"\?", "."))
    expected = next((at for at in range(len(text) + 1) if form.match(text, at)), -1)
    assert expected == piece.find_by_blocks(text, 0, len(text) - piece.length, block)
    assert expected == piece.find(text, 0, len(text))


HARD: dict[str, Callable[[int], tuple[str, str]]] = {
    "every second one": lambda n: ("*" + "a?" * (n // 2) + "b*", "a" * 2 * n),
    "many pieces": lambda n: ("*a?b" * (n // 4) + "*", "a" * n),
    "many stars": lambda n: ("*a" * (n // 2) + "b", "a" * n),
    "only single ones": lambda n: ("*" + "?" * n + "*x", "a" * 2 * n),
}


@pytest.mark.parametrize("name", HARD)
def test_twice_the_text_takes_about_twice_the_work(name: str) -> None:
    """A pattern as long as the text does not make the work quadratic."""

    def prepare(size: int) -> Callable[[], object]:
        pattern, text = HARD[name](size)
        return lambda: match(pattern, text)

    assert growth(prepare, 2000) < MOST_GROWTH


def test_a_match_that_takes_too_long_is_an_error() -> None:
    """The budget ends it; it never counts as a mismatch."""
    with pytest.raises(BudgetExceededError):
        match("*" + "a?" * 250_000 + "b*", "a" * 1_000_000)


def test_long_texts_have_a_price() -> None:
    """A caller with a budget pays for what the bits of integers hide."""
    assert 0 == match_price("a?" * 100, "a" * 100_000)
    assert 0 == match_price("a*" * 10_000, "a" * 10_000)
    assert 30 <= match_price("a?" * 5_000, "a" * 1_000_00)
