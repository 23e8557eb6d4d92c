"""Paths and the expressions of the same place."""

from __future__ import annotations

import pytest

from pyverno.lang.template.location import join_path, parse_path, path_expression, place_expression


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b/c", ("a", "b", "c")),
        ("/a/b-b/0", ("a", "b-b", "0")),
        ("d/e\\/e/f", ("d", "e/e", "f")),
        ("//a//", ("a",)),
        ('a/"b/c"/d', ("a", "b/c", "d")),
        ("", ()),
    ],
)
def test_a_path_splits_at_slashes_that_are_not_protected(path, expected):
    """A backslash or quotes protect a slash."""
    assert expected == parse_path(path)


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        (("a", "3", "e/e", "f"), 'a[3]."e/e".f'),
        (("a-b",), '"a-b"'),
        (("바나나", "c"), '"바나나".c'),
        (('q"q', "t\tt", "\x01"), '"q\\"q"."t\\tt"."\\u0001"'),
        (("99999999999999999999999",), '"99999999999999999999999"'),
        ((), ""),
    ],
)
def test_segments_become_an_expression(segments, expected):
    """Digits are indexes, everything that is no identifier is quoted."""
    assert expected == path_expression(segments)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/mutate/overlay/spec/kind", "request.object.spec.kind"),
        ("/mutate/foreach/0/patchStrategicMerge/spec/x", "request.object.spec.x"),
        ("/validate/pattern", "request.object"),
        ("", "request.object"),
    ],
)
def test_the_place_of_a_variable_leaves_out_the_rule_around_it(path, expected):
    """Two segments are dropped, and all through `foreach`."""
    assert expected == place_expression(path, "request.object")


def test_a_slash_in_a_key_is_escaped():
    """So that parse_path gives the key back."""
    assert parse_path(join_path(join_path(join_path("", "a"), "b/c"), 1)) == ("a", "b/c", "1")
