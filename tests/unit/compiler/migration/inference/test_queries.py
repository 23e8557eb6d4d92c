"""Types of fields, inferred from the expressions that read them."""

from __future__ import annotations

import pytest

from pyverno.compiler.migration.inference.evidence import Evidence
from pyverno.compiler.migration.inference.queries import place_of, read_query
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.expression import compile_expression

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
FLAG = {"type": "boolean"}


def lists(item: JSON) -> JSON:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def fields(**schemas: JSON) -> JSON:
    """Return the schema of an object."""
    return {"type": "object", "properties": schemas}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.b == 'x'", fields(a=fields(b=TEXT))),
        ("(a || `100`) > `50`", fields(a=NUMBER)),
        ("a > b", fields(a=NUMBER, b=NUMBER)),
        ("a || b == 'x'", fields(a=TEXT, b=TEXT)),
        ("!a && b == 'x'", fields(a=FLAG, b=TEXT)),
        ("length(a || `[]`)", fields(a=lists(TEXT))),
        ("length(a)", fields(a=lists(TEXT))),
        ("a[].b[].c == 'x'", fields(a=lists(fields(b=lists(fields(c=TEXT)))))),
        ("a[?b && starts_with(c, 'x')].d", fields(a=lists(fields(b=FLAG, c=TEXT, d=TEXT)))),
        ("a[0].b == `1`", fields(a=lists(fields(b=NUMBER)))),
        ("a.*.b", fields(a={"type": "object", "additionalProperties": fields(b=TEXT)})),
        ("values(a)[?b]", fields(a={"type": "object", "additionalProperties": fields(b=FLAG)})),
        ("[a || `null`, c[].b || `[]`][] | [?starts_with(@, 'x')]", fields(a=TEXT, c=lists(fields(b=TEXT)))),
        ("[a || `null`, b || `[]`][] | [?c]", fields(a=fields(c=FLAG), b=lists(fields(c=FLAG)))),
        ("contains(hosts || ['*'], '*')", fields(hosts=lists(TEXT))),
        ("contains([`3`, `5`], a || `1`)", fields(a=NUMBER)),
        ("contains(ports, `80`)", fields(ports=lists(NUMBER))),
        ("regex_match('^a', a.b)", fields(a=fields(b=TEXT))),
        ("max_by(a, &b).c", fields(a=lists(fields(b=TEXT, c=TEXT)))),
        ("{x: a.b}.x == `true`", fields(a=fields(b=FLAG))),
        ("add(a, `1`)", fields(a=NUMBER)),
        ("a[:2].b", fields(a=lists(fields(b=TEXT)))),
    ],
)  # fmt: skip
def test_an_expression_shows_types(expression: str, expected: JSON) -> None:
    """By the constants beside a field, and by the functions that it goes to."""
    found = Evidence()
    read_query(compile_expression(expression).ast, place_of(found))
    assert expected == found.schema()
