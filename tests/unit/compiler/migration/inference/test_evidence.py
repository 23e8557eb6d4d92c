"""Schemas that follow from what rules show about a value."""

from __future__ import annotations

from pyverno.compiler.migration.inference.evidence import Evidence
from pyverno.kube.json import JSON


def shown(*types: str, name: str = "x") -> Evidence:
    """Return evidence of some types."""
    found = Evidence(name)
    for each in types:
        found.show(each)
    return found


def test_a_value_of_one_type_has_it() -> None:
    """One type is the schema."""
    assert {"type": "boolean"} == shown("boolean").schema()


def test_a_number_and_a_text_are_either() -> None:
    """Rules that compare with both read a field that takes both."""
    assert {"x-kubernetes-int-or-string": True} == shown("integer", "string").schema()


def test_types_that_exclude_each_other_leave_the_value_open() -> None:
    """Nothing is guessed where the rules disagree."""
    assert {"x-kubernetes-preserve-unknown-fields": True} == shown("string", "object").schema()


def test_a_member_of_a_plural_field_is_an_element() -> None:
    """`AnyIn` compares a value or its elements, and only the field name distinguishes the two."""
    plural, single = Evidence("hosts"), Evidence("class")
    plural.show_member("string")
    single.show_member("string")
    assert {"type": "array", "items": {"type": "string"}} == plural.schema()
    assert {"type": "string"} == single.schema()


def test_a_suspicion_counts_where_nothing_else_is_known() -> None:
    """A field that is only tested for truth is a boolean, unless something shows its type."""
    found = Evidence("enabled")
    found.suspect("boolean")
    assert {"type": "boolean"} == found.schema()
    found.show("string")
    assert {"type": "string"} == found.schema()


def test_examples_count_more_than_rules() -> None:
    """An object of the cluster shows the type that a comparison only suggests."""
    found = Evidence()
    found.field("port").show("string")
    example: JSON = {"port": 80, "unread": "a"}
    found.see(example)
    assert {"type": "object", "properties": {"port": {"type": "integer"}}} == found.schema()
