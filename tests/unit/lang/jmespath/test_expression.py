"""Properties of a compiled expression."""

import pytest

from pyverno.errors import ExpressionSyntaxError
from pyverno.lang.jmespath import EVERYTHING, compile_expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("request.object.metadata.name", {"request"}),
        ("a.b || length(c[?d].e)", {"a", "c"}),
        ("a | b", {"a"}),
        ("@.a.b", {"a"}),
        ("@ | a | b", {"a"}),
        ("keys(@)", {EVERYTHING}),
        ("*.a", {EVERYTHING}),
        ("@[*].a", {EVERYTHING}),
        ("{x: a, y: [b.c, 'd']}", {"a", "b"}),
        ("map(&x, a)", {"a"}),
        ("sort_by(a, &x)[0].y", {"a"}),
        ("\ue0000\ue001.a", {EVERYTHING}),
        ("'text'", set()),
    ],
)
def test_roots_are_the_fields_of_the_top_level(text, expected):
    """Fields of elements and of piped values are not among them."""
    assert frozenset(expected) == compile_expression(text).roots


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b.c", ("a", "b", "c")),
        ('a."b.c"', ("a", "b.c")),
        ("a[0]", None),
        ("a.length(@)", None),
        ("a.\ue0000\ue001", None),
        ("@", None),
    ],
)
def test_a_chain_is_a_plain_path_of_fields(text, expected):
    """Other expressions have no path."""
    assert expected == compile_expression(text).chain


def test_functions_are_collected_from_everywhere():
    """Inside arguments, filters and expression references."""
    found = compile_expression("a[?starts_with(b, 'x')] | map(&to_upper(c), @)").functions
    assert frozenset({"starts_with", "map", "to_upper"}) == found


def test_the_same_text_is_compiled_once():
    """Expressions are immutable and remembered."""
    assert compile_expression("a.b") is compile_expression("a.b")


def test_an_error_carries_its_offset():
    """Code points, also behind characters of several bytes."""
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_expression("'é' #")
    assert 4 == caught.value.offset
