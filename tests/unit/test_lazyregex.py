"""Expressions of our own code are compiled late and act as if they were compiled at once."""

from __future__ import annotations

import re

import pytest

from pyverno.lazyregex import go_regex, regex


@pytest.mark.parametrize("text", ["", "abc", "ABC1", "1a2b"])
def test_a_late_expression_acts_as_a_compiled_one(text: str) -> None:
    """Each method gives what the method of the compiled expression gives, flags included."""
    late, compiled = regex("[a-z]+", re.IGNORECASE), re.compile("[a-z]+", re.IGNORECASE)
    assert compiled.findall(text) == late.findall(text)
    assert compiled.sub("-", text) == late.sub("-", text)
    assert compiled.split(text) == late.split(text)
    assert repr(compiled.fullmatch(text)) == repr(late.fullmatch(text))
    assert repr(compiled.search(text, 1)) == repr(late.search(text, 1))
    assert [found.span() for found in compiled.finditer(text)] == [found.span() for found in late.finditer(text)]


def test_a_wrong_expression_is_found_when_it_is_used() -> None:
    """The expression is compiled at its first use."""
    wrong = regex("(")
    with pytest.raises(re.error):
        wrong.search("")


def test_there_are_no_other_attributes() -> None:
    """A misspelt method is an error as ever."""
    assert not hasattr(regex("a"), "serach")


def test_expressions_in_go_run_on_re2() -> None:
    r"""`\z`, which Python's engine reads in another way, shows the engine."""
    assert go_regex(r"a\z").search("a") is not None
    assert "x-x" == go_regex("[0-9]+").sub("-", "x12x")
