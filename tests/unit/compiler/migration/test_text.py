"""Tests of `migration.text`."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.schema import SchemaBook
from pyverno.compiler.migration.text import (
    Cel,
    CelType,
    Level,
    Reference,
    all_of,
    any_of,
    compare,
    element,
    literal,
    quote,
    ternary,
)
from pyverno.lang.cel import STANDARD

BOOK = SchemaBook()
POD = Reference("object", BOOK.of("", "v1", "Pod"))


@pytest.mark.parametrize(
    "text", ["", "it's", 'say "a"', "both ' and \"", "back\\slash", "a\nb\tc", "\x00\u2028é😀", "{{ x }}"]
)
def test_a_quoted_text_is_that_text_again(text: str) -> None:
    """Any text survives the way into CEL and back."""
    assert text == STANDARD.compile(quote(text)).evaluate({})


def test_operands_get_the_parentheses_that_they_need() -> None:
    """An `||` below an `&&` keeps its meaning, and constants fall away."""
    a, b, c = (Cel(name, CelType.BOOL) for name in "abc")
    assert "(a || b) && c" == str(all_of([any_of([a, b]), c]))
    assert "a && b || c" == str(any_of([all_of([a, b]), c]))
    assert "!(a || b)" == str(any_of([a, b]).not_())
    assert "(a ? b : c) && a" == str(all_of([ternary(a, b, c), a]))
    assert "false" == str(all_of([a, any_of([])]))


def test_negations_stay_readable() -> None:
    """A negated equality is an inequality, and two negations cancel."""
    equal = compare(Cel("a.b"), "==", literal("x == y"))
    assert ("a.b != 'x == y'", "a.b == 'x == y'") == (str(equal.not_()), str(equal.not_().not_()))
    assert "has(a.b)" == str(Cel("has(a.b)", CelType.BOOL).not_().not_())
    assert "!(a < b)" == str(compare(Cel("a"), "<", Cel("b")).not_())
    assert "!(!(a || b) || c)" == str(Cel("!(a || b) || c", CelType.BOOL, Level.OR).not_())


def test_references_are_optional_from_the_first_field_that_can_be_missing() -> None:
    """`object.spec` is always there, `securityContext` is not."""
    field = POD.field("spec").field("securityContext").field("runAsNonRoot")
    assert "object.spec.?securityContext.?runAsNonRoot.orValue(false)" == str(field.or_value(literal(False)))
    assert "object.spec.?securityContext.?runAsNonRoot.hasValue()" == str(field.is_present())
    assert "object.spec.containers" == str(POD.field("spec").field("containers").or_empty())


def test_values_that_can_be_null_are_tested_for_null() -> None:
    """`rules` of a ClusterRole has no `omitempty`: null reaches admission."""
    rules = Reference("object", BOOK.of("rbac.authorization.k8s.io", "v1", "ClusterRole")).field("rules")
    assert "has(object.rules) && object.rules != null ? object.rules : []" == str(rules.or_empty())


def test_an_element_is_always_there() -> None:
    """The variable of a macro stands for an element."""
    container = element("c", POD.schema.at("spec", "containers").element)
    assert ("c.name", "c.?workingDir.orValue('')") == (
        str(container.field("name").value()),
        str(container.field("workingDir").or_value(literal(""))),
    )
