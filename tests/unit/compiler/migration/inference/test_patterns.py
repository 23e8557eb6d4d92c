"""Types of fields, inferred from patterns."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.inference.evidence import Evidence
from pyverno.compiler.migration.inference.patterns import read_pattern
from pyverno.kube.json import JSON

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("pattern", "schema"),
    [
        ("STRICT", TEXT),
        ("?*", TEXT),
        ("<=1Gi", TEXT),
        ("<=2160h", TEXT),
        ("?* & !*{*", TEXT),
        (">1024", {"type": "integer"}),
        ("1-5", {"type": "integer"}),
        (">=0.5", {"type": "number"}),
        ("3", {"x-kubernetes-int-or-string": True}),
        (True, {"type": "boolean"}),
        (3, {"type": "integer"}),
        (1.5, {"type": "number"}),
        (["a"], {"type": "array", "items": TEXT}),
        ({"=(a)": "?*"}, {"type": "object", "properties": {"a": TEXT}}),
        ({"X(a)": "null"}, {"type": "object", "properties": {"a": TEXT}}),
        ({"*": "?*"}, {"type": "object", "additionalProperties": TEXT}),
    ],
)
def test_a_pattern_shows_a_type(pattern: JSON, schema: JSON) -> None:
    """By the form of its operands; anchors are no part of names."""
    found = Evidence()
    read_pattern(pattern, found)
    assert schema == found.schema()


def test_variables_are_left_to_the_caller() -> None:
    """A text with variables shows nothing about its own field."""
    found, texts = Evidence(), []
    read_pattern({"a": "{{ request.object.b }}"}, found, texts.append)
    assert ["{{ request.object.b }}"] == texts
