"""References `$(path)` inside one document."""

from __future__ import annotations

import time

import pytest

from pyverno.errors import SubstitutionError
from pyverno.lang.template import Surroundings, resolve_references


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"a": "x", "b": "$(./../a)"}, {"a": "x", "b": "x"}),
        ({"a": "x", "b": "$(/a)"}, {"a": "x", "b": "x"}),
        ({"a": "x", "b": "1 $(/a) 2"}, {"a": "x", "b": "1 x 2"}),
        ({"a": "x", "b": ["$(../../a)"]}, {"a": "x", "b": ["x"]}),
        ({"l": ["p", "q"], "b": "$(/l/1)"}, {"l": ["p", "q"], "b": "q"}),
        ({"(s)": {"n": "v"}, "b": "$(/s/n)"}, {"(s)": {"n": "v"}, "b": "v"}),
        ({"a": "2Mi", "b": "$(<=/a)"}, {"a": "2Mi", "b": "<=2Mi"}),
        ({"a": 5, "b": "$(>/a)"}, {"a": 5, "b": ">5.000000"}),
        ({"a": 0.25, "b": "$(!/a)"}, {"a": 0.25, "b": "!0.250000"}),
        ({"a": "x", "b": "\\$(/a) $(/a)"}, {"a": "x", "b": "$(/a) x"}),
        ({"a": "x", "b": "\\$(/nowhere)"}, {"a": "x", "b": "$(/nowhere)"}),
        ({"a": "x", "é $(/a)": 1}, {"a": "x", "é x": 1}),
        ({"s": {"only": 1}, "b": "$(/s)"}, {"s": {"only": 1}, "b": "only"}),
        ({"a": "{{ v }}", "b": "$(/a)"}, {"a": "{{ v }}", "b": "{{ v }}"}),
        ("no reference $ (", "no reference $ ("),
    ],
)
def test_a_reference_repeats_text_of_the_same_document(document, expected):
    """Absolute and relative paths, operators, escapes and anchors."""
    assert expected == resolve_references(document)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"b": "$(/a)"}, "got nil resolved variable $(/a) at path /b: <nil>"),
        ({"a": 5, "b": "$(/a)"}, "NotResolvedReferenceErr,reference $(/a) not resolved at path /b"),
        ({"a": True, "b": ["x", "$(/a)"]}, "NotResolvedReferenceErr,reference $(/a) not resolved at path /b/1"),
        ({"b": "$(>=)"}, "failed to resolve $(>=) at path /b: expected path, found empty reference"),
        (
            {"a": True, "b": "$(>/a)"},
            "failed to resolve $(>/a) at path /b: incorrect expression: operator > does not match with value true",
        ),
        (
            {"b": "$(>/a)"},
            "failed to resolve $(>/a) at path /b: incorrect expression: operator > does not match with value <nil>",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_an_error(document, message):
    """The texts are Kyverno's."""
    with pytest.raises(SubstitutionError) as raised:
        resolve_references(document)
    assert message == raised.value.message


def test_a_document_without_references_is_returned_itself():
    """Nothing is copied."""
    document = {"a": [1, "x"]}
    assert resolve_references(document) is document


def test_finding_references_takes_linear_time():
    """Unclosed parentheses do not make the search quadratic."""
    start = time.process_time()
    resolve_references({"a": ")" + "\\$(" * 100_000})
    assert time.process_time() - start < 2


RULE = {"name": "limits", "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "x"}}}}}


@pytest.mark.parametrize(
    ("reference", "path", "is_text", "expected"),
    [
        ("$(./../../../../../name)", "/mutate/patchStrategicMerge", False, "limits"),
        ("$(./../../name)", "/mutate/patchesJson6902", True, "limits"),
        ("$(/mutate/patchStrategicMerge/metadata/labels/a)", "/mutate/patchStrategicMerge", False, "x"),
        ("$(./../a)", "/mutate/patchStrategicMerge", False, "x"),
    ],
)
def test_references_of_a_part_look_at_the_whole(reference: str, path: str, is_text: bool, expected: str) -> None:
    """A patch is a part of its rule; of a patch that is a text, the text alone has a path."""
    part = {"metadata": {"labels": {"b": reference}}}
    resolved = resolve_references(part, Surroundings(RULE, path, is_text))
    assert resolved == {"metadata": {"labels": {"b": expected}}}


def test_the_error_of_a_part_names_the_path_in_the_whole() -> None:
    """As Kyverno does."""
    with pytest.raises(SubstitutionError, match=r"\$\(/no\) at path /mutate/patchStrategicMerge/a: <nil>"):
        resolve_references({"a": "$(/no)"}, Surroundings(RULE, "/mutate/patchStrategicMerge"))
