"""Rebased trees equal the trees of the text with the longer path."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyverno.compiler.cel.environment import environment_of_kind
from pyverno.lang.cel import Environment
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.rebase import rebase
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.types import DYN, STRING, map_of

ENVIRONMENT = environment_of_kind("ValidatingPolicy").with_variables({"object": DYN, "oldObject": DYN})
STEPS = ("spec", "template")
PLACES = re.compile(r"\b(object|oldObject)(?=\.(spec|metadata)\b)")


def described(checked: Checked) -> list[tuple[Any, ...]]:
    """Return everything that is known of the nodes of a tree, in order, ids left aside."""
    return [
        (
            type(node),
            node.offset,
            checked.types.get(node.id),
            checked.references.get(node.id),
            checked.resolutions.get(node.id),
            checked.struct_names.get(node.id),
            *(getattr(node, name) for name in ("value", "name", "field", "function", "kind") if hasattr(node, name)
              and not isinstance(getattr(node, name), ast.Node)),
        )
        for node in ast.walk(checked.root)
    ]  # fmt: skip


def moved(text: str, environment: Environment = ENVIRONMENT) -> Checked | None:
    """Return the tree of a text, moved at each place where its object is looked into."""
    return rebase(environment.check(text), [match.end() for match in PLACES.finditer(text)], STEPS)


def test_a_list_that_a_macro_uses_twice_is_moved_twice() -> None:
    """`sortBy` is a sort of a list by keys of the same list."""
    text = "object.spec.a.sortBy(e, e.b)[0].c == object.spec.d"
    deeper = moved(text)
    assert deeper is not None
    assert described(ENVIRONMENT.check(PLACES.sub(rf"\1.{'.'.join(STEPS)}", text))) == described(deeper)


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.containers.all(c, c.name != object.metadata.name)",
        "has(object.spec.x) && !has(object.metadata) || object.spec == oldObject.spec",
        "object.spec.?a.orValue(object.metadata[?'b'].orValue({'c': [object.spec.d]}))",
        "size(object.spec.a) > 1 ? object.spec['b'] == 'é' : object.spec.c.startsWith('object')",
        "cel.bind(x, object.spec.a, x.b == object.metadata.c) && object.spec.?a.optMap(v, v.b).hasValue()",
        "[object.spec.a, dyn('b')].exists(e, e == 'b') && object.status == null",
        "true",
    ],
)
def test_a_moved_tree_is_that_of_the_longer_text(text: str) -> None:
    """Types, names, calls and offsets are those of parsing and checking it."""
    deeper = moved(text)
    assert deeper is not None
    longer = PLACES.sub(rf"\1.{'.'.join(STEPS)}", text)
    assert described(ENVIRONMENT.check(longer)) == described(deeper)
    assert len({node.id for node in ast.walk(deeper.root)}) == len(list(ast.walk(deeper.root)))


@pytest.mark.parametrize(
    "text",
    [
        "'object.spec' == 'a'",
        "[{'spec': 1}].all(object, object.spec == 1)",
        "oldObject.object.spec == 1",
        "object.metadata == 1 // object.spec",
        "object.spec()",
    ],
)
def test_what_is_no_field_of_the_object_is_not_moved(text: str) -> None:
    """Texts, comments, local names, fields of that name and calls make the text another one."""
    environment = ENVIRONMENT
    checked = environment.check(text, lenient=True)
    assert rebase(checked, [match.end() for match in PLACES.finditer(text)], STEPS) is None


def test_objects_of_a_known_type_are_not_moved() -> None:
    """A longer path would change the types of their fields."""
    environment = ENVIRONMENT.with_variables({"object": map_of(STRING, STRING)})
    assert moved("object.spec == 'a'", environment) is None
