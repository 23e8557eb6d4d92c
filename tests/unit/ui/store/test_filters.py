"""Patterns of filters that decide in this process are those that the store decides by its own GLOB."""

from __future__ import annotations

import itertools
import sqlite3

import pytest

from pyverno.ui.store.filters import fits, quote_pattern

PARTS = ("a", "b", "*", "?", "[*]", "[?]", "[[]", "\n")
VALUES = ("", "a", "ab", "ba", "aab", "a*", "*", "?b", "[", "a\nb", "aba")


def test_patterns_fit_what_the_store_selects() -> None:
    """Wildcards, characters in brackets and line ends, in every combination of three parts."""
    patterns = ["".join(parts) for parts in itertools.product(("", *PARTS), repeat=3)]
    with sqlite3.connect(":memory:") as store:
        glob = {
            (pattern, value): bool(store.execute("SELECT ? GLOB ?", (value, pattern)).fetchone()[0])
            for pattern, value in itertools.product(patterns, VALUES)
        }
    store.close()
    assert glob == {(pattern, value): fits((pattern,), value) for pattern, value in glob}


@pytest.mark.parametrize("value", ["a*b", "?", "[x]", "!a", "a"])
def test_a_quoted_value_fits_itself_alone(value: str) -> None:
    """Names with wildcards select no others."""
    assert [True, False] == [fits((quote_pattern(value),), each) for each in (value, f"{value}x")]


@pytest.mark.parametrize("pattern", ["*" * 2000 + "x", "*a" * 1000 + "*b"])
def test_no_pattern_takes_long(pattern: str) -> None:
    """Eighty stars of a filter for statuses took five seconds of the whole server, and each further one twice that."""
    assert not fits((pattern,), "a" * 253)
