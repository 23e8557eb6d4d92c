"""Types: what is deduced, and what does not compile."""

import pytest

from pyverno.lang.cel import STANDARD, CompileError
from pyverno.lang.cel.checking.structs import SchemaTypes
from pyverno.lang.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, parse_type, struct

ENVIRONMENT = STANDARD.with_variables(
    {"i": INT, "s": STRING, "l": list_of(INT), "m": map_of(STRING, INT), "x": DYN, "b": BOOL}
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", "int"),
        ("[1, 2.0]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("{'a': [i]}", "map(string, list(int))"),
        ("l.map(e, string(e))", "list(string)"),
        ("l.filter(e, e > 1)", "list(int)"),
        ("m.map(k, k)", "list(string)"),
        ("x.a.b", "dyn"),
        ("b ? 1 : 2", "int"),
        ("b ? x : 2", "dyn"),
        ("m.?a", "optional_type(int)"),
        ("m.?a.orValue(3)", "int"),
        ("optional.of(1).optMap(v, string(v))", "optional_type(string)"),
        ("optional.of(1).optFlatMap(v, optional.of('a'))", "optional_type(string)"),
        ("type(1)", "type(int)"),
        ("timestamp('2020-01-01T00:00:00Z') - duration('1h')", "timestamp"),
        ("b ? null : optional.of(1)", "optional_type(int)"),
    ],
)
def test_types_are_deduced(text: str, expected: str) -> None:
    """The checker finds the type of the whole expression."""
    assert str(ENVIRONMENT.check(text).type) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y", "1:1: undeclared reference to 'y' (in container '')"),
        ("f(1)", "1:2: undeclared reference to 'f' (in container '')"),
        ("i + s", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("i.startsWith('a')", "1:13: found no matching overload for 'startsWith' applied to 'int.(string)'"),
        ("i.a", "1:2: type 'int' does not support field selection"),
        ("i && b", "1:1: expected type 'bool' but found 'int'"),
        ("b ? 1 : 'a'", "1:3: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("i.all(e, true)", "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or"),
        ("l.all(e, e)", "1:10: expected type 'bool' but found 'int'"),
        ("l.filter(e, e)", "1:9: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'"),
        ("1 == 1.0", "1:3: found no matching overload for '_==_' applied to '(int, double)'"),
        ("m == null", "1:3: found no matching overload for '_==_' applied to '(map(string, int), null)'"),
        ("i.optMap(v, v)", "1:9: found no matching overload for 'hasValue' applied to 'int.()'"),
        ("Missing{}", "1:8: undeclared reference to 'Missing' (in container '')"),
    ],
)
def test_what_does_not_type_check_is_refused(text: str, expected: str) -> None:
    """Messages and places are cel-go's."""
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.check(text)
    assert f"ERROR: <input>:{expected}" in str(caught.value)


def test_all_problems_are_collected() -> None:
    """One pass reports every problem."""
    with pytest.raises(CompileError) as caught:
        ENVIRONMENT.check("y && z && i")
    assert len(caught.value.issues) == 3


def test_fields_come_from_a_schema() -> None:
    """The case of the seeds: a field that the schema does not have, with line and caret."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
    }
    types = SchemaTypes({"Deployment": schema})
    environment = STANDARD.with_structs(types).with_variables({"object": types.type_of("Deployment")})
    assert environment.check("object.spec.replicas > 1").type == BOOL
    with pytest.raises(CompileError) as caught:
        environment.check("object.replicas > 1")
    assert str(caught.value) == ("ERROR: <input>:1:7: undefined field 'replicas'\n | object.replicas > 1\n | ......^")


def test_schemas_give_lists_maps_formats_and_escaped_names() -> None:
    """Properties become types; odd names are escaped, reserved words stay usable after a dot."""
    types = SchemaTypes(
        {
            "T": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "at": {"type": "string", "format": "date-time"},
                    "any": {"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
                    "port": {"x-kubernetes-int-or-string": True},
                    "x-y": {"type": ["boolean", "null"]},
                    "namespace": {"type": "string"},
                },
            }
        }
    )
    expected = {
        "items": list_of(struct("T.items.@items")),
        "labels": map_of(STRING, STRING),
        "at": parse_type("timestamp"),
        "any": DYN,
        "port": DYN,
        "x__dash__y": BOOL,
        "namespace": STRING,
        "__namespace__": STRING,
        "missing": None,
    }
    assert {name: types.field_type("T", name) for name in expected} == expected


def test_an_expected_type_must_be_met_exactly() -> None:
    """A dyn result is refused where bool is wanted, as in Kubernetes."""
    assert ENVIRONMENT.check("x.a == 1", expected=BOOL).type == BOOL
    with pytest.raises(CompileError, match="output is expected to be of type bool"):
        ENVIRONMENT.check("x.a", expected=BOOL)


def test_containers_qualify_names() -> None:
    """A name is looked for in the container first; a leading dot skips it."""
    from dataclasses import replace

    environment = replace(STANDARD, container="a.b", variables={"a.b.x": INT, "x": STRING})
    assert str(environment.check("x").type) == "int"
    assert str(environment.check(".x").type) == "string"


def test_lenient_compilation_leaves_problems_to_the_run() -> None:
    """Without type checking an unknown function fails only where it is called."""
    program = STANDARD.compile("f_unknown(1) || true", lenient=True)
    assert program.evaluate({}) is True
