"""Names in texts: as a regular expression for each name finds them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyverno.engine.explain.mentions import MentionedNames

PARTS = st.lists(st.sampled_from(["a", "b", "ab", "é", "-", ".", " ", "_", "1", "-a"]), min_size=1, max_size=6)
TEXTS = PARTS.map("".join)


@given(st.lists(TEXTS, unique=True, max_size=6), TEXTS)
def test_names_are_found_as_words(names: list[str], text: str) -> None:
    """No letter, digit or underscore stands before or after a name; the order is that of the names."""
    expected = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    assert expected == MentionedNames(names).find(text)


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [("a", "ab a", True), ("a", "ab", False), ("a-b", "xa-b a-b", True), ("-", "a-b", False)],
)
def test_part_of_a_word_is_no_name(name: str, text: str, is_found: bool) -> None:
    """Another occurrence may be one."""
    assert [name] * is_found == MentionedNames([name]).find(text)
