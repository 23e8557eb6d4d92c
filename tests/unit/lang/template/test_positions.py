"""Positions of an expression's characters in the text that holds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyverno.errors import ExpressionSyntaxError
from pyverno.lang.template import compile_template
from pyverno.lang.template.expression_text import compile_expression_text
from pyverno.lang.template.patchtext import compile_patch_text
from pyverno.lang.template.positions import VariablePositions, find_steps
from pyverno.lang.template.syntax import PLACEHOLDER, parse_string

_PIECES = st.sampled_from(
    ("{{", "}}", "a", " ", "- ", "{{ b }}", "{{- c }}", "{{d}}", "\\{{", "'x'", ".y", "\ue000", "\n")
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_every_character_of_an_expression_is_found_in_its_text(text: str) -> None:
    """The text has the character of the expression at the offset that is found."""
    positions = VariablePositions(text)
    for number, occurrence in enumerate(parse_string(text).occurrences):
        if occurrence.constant is not None or not occurrence.text:
            continue
        placeholders = {
            index for placeholder in PLACEHOLDER.finditer(occurrence.text) for index in range(*placeholder.span())
        }
        written = [index for index in range(len(occurrence.text)) if index not in placeholders]
        found = "".join(text[positions.find(number, index)] for index in written)
        assert found == "".join(occurrence.text[index] for index in written)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a {{ b ||| c }}", "| c }}"),
        ("{{ a }} {{ f({{ b }}) ||| c }}", "| c }}"),
        ("{{- a ||| b }}", "| b }}"),
        ("{{ a( }}", "}}"),
    ],
)
def test_a_variable_that_does_not_parse_has_the_place_of_the_character(text: str, rest: str) -> None:
    """The problem of a template names the text and the offset at fault."""
    (problem,) = compile_template({"x": [text]}).errors
    assert (problem.steps, text[problem.offset :].lstrip()) == (("x", 0), rest)


def test_a_query_with_variables_has_the_offset_in_its_own_text() -> None:
    """Offsets are those of the written text, inside and outside of the variables."""
    found = []
    for text in ("a.{{ b ||| c }}", "a.{{ bb }}.y ||| z"):
        with pytest.raises(ExpressionSyntaxError) as caught:
            compile_expression_text(text)
        found.append(text[caught.value.offset :])
    assert found == ["| c }}", "| z"]


def test_places_in_a_patch_are_those_of_its_text() -> None:
    """Variables in front of a place do not move it."""
    text = '- op: add\n  path: /a\n  value: "{{ b }}"\n- {op: addd, value: "{{ c }} {{ d ||| e }}", path: f}\n'
    patch = compile_patch_text(text)
    (problem,) = patch.template.errors
    places = [(1, "op"), (1, "path")]
    positions = patch.positions()
    found = [text[positions.find(place) :][:5] for place in places]
    assert found == ["addd,", "f}\n"]
    assert text[positions.find(problem.steps, problem.offset) :].startswith('| e }}"')


def test_a_patch_that_is_no_yaml_has_the_offset_of_the_fault() -> None:
    """The place that the reader of YAML found is one of the text, also after a variable."""
    text = '- {op: add, value: "{{ aaaaaaaa }}", path: [/x}\n'
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_patch_text(text)
    assert text[caught.value.offset :].startswith("[/x}")


def test_steps_are_found_for_names_with_slashes() -> None:
    """A path of a template leads to its place, whatever the names are."""
    document = {"a": {"b": 1}, "a/b": ["x", {"c": 2}]}
    assert find_steps(document, "/a\\/b/1/c") == ("a/b", 1, "c")
