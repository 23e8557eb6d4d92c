"""Variables of one string: where they are and how they nest."""

from __future__ import annotations

import time

import pytest

from pyverno.errors import SubstitutionError
from pyverno.lang.template import has_variables, is_reference, is_variable, split_variables
from pyverno.lang.template.syntax import parse_string


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ a }}", True),
        ("x{{a}}", True),
        ("{{}}", True),
        ("{{ {x: a} }}", True),
        ("\\{{ a }}", False),
        ("{{ {x: {y: a}} }}", False),
        ("{{ a }", False),
        ("{ a }", False),
        ("", False),
        ("\n{{ a }}", True),
        ("{{ a\nb }}", True),
    ],
)
def test_a_variable_is_recognised_by_its_braces(text, expected):
    """One level of single braces may be inside, a backslash in front hides it."""
    assert expected == is_variable(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("$(a)", True), ("x $(/a/b)", True), ("\\$(a)", False), ("$()", False), ("$(a", False), ("", False)],
)
def test_a_reference_is_recognised_by_its_parentheses(text, expected):
    """A reference needs at least one character and no backslash in front."""
    assert expected == is_reference(text)


def test_variables_are_found_in_keys_and_values_at_any_depth():
    """The document is searched without recursion."""
    deep: object = "{{ a }}"
    for _ in range(20_000):
        deep = [deep]
    assert has_variables(deep)
    assert has_variables({"a": {"{{ k }}": 1}})
    assert not has_variables({"a": ["b", 1, None, "\\{{ c }}"]})


def test_inner_variables_come_before_outer_ones():
    """The order is that of evaluation."""
    assert split_variables("{{ a.{{b}} }} and {{ c }}") == ("b", "c", "a.{{b}}")


def test_adjacent_variables_are_all_found():
    """Kyverno needs two passes for them; none is lost."""
    assert list(split_variables("{{a}}{{b}}{{c}}")) == ["a", "c", "b"]


def test_a_shallow_variable_at_the_end_of_a_pass_stops_scanning():
    """The outer variable stays text."""
    parsed = parse_string("{{ d.{{x}} }} {{- a }}")
    assert [item.text for item in parsed.occurrences] == ["x", "a"]
    assert parsed.parts == ("{{ d.", 0, " }} ", 1)


def test_too_many_levels_are_an_error():
    """Sixteen rounds is the limit."""
    assert len(parse_string("{{ a." * 15 + "b" + " }}" * 15).occurrences) == 15
    with pytest.raises(SubstitutionError, match="nested more than 16 levels"):
        parse_string("{{ a." * 40 + "b" + " }}" * 40)


def test_characters_that_look_like_holes_are_plain_text():
    """The placeholder characters cannot be forged by a document."""
    parsed = parse_string("\ue0000\ue001 {{ '\ue0005\ue001' }}")
    assert [item.constant for item in parsed.occurrences[:4]] == ["\ue000", "\ue001", "\ue000", "\ue001"]


@pytest.mark.parametrize("text", ["{{" * 200_000, "{{a" * 100_000, "{{{b}" * 100_000, "{{ " + "{b}" * 100_000])
def test_scanning_takes_linear_time(text):
    """Unclosed braces do not make the scan quadratic."""
    start = time.process_time()
    parse_string(text)
    assert time.process_time() - start < 2
