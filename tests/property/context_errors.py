"""Expressions that read one name in every way that the dialect has, from the grammar and the table of functions."""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.lang.jmespath import FUNCTIONS
from pyverno.lang.jmespath.function import (
    ANY,
    ARRAY,
    ARRAY_OF_NUMBERS,
    ARRAY_OF_STRINGS,
    EXPREF,
    NUMBER,
    OBJECT,
    STRING,
)

__all__ = ["PLAIN", "calls", "readings"]

PLAIN = {
    STRING: "'1'",
    NUMBER: "`1`",
    ARRAY: '`["1"]`',
    OBJECT: '`{"a": "1"}`',
    ARRAY_OF_STRINGS: '`["1"]`',
    ARRAY_OF_NUMBERS: "`[1]`",
    EXPREF: "&@",
    ANY: "'1'",
}
"""A literal for each type that a parameter may have."""

_OPERATORS = (
    *("{}", "{}.a", "{}[]", "{}[].a", "{}[*]", "{}[*].a", "{}.*", "{}.*.a", "{}[?a]", "{}[?a].b", "{}[0]", "{}[1:]"),
    *("({})[]", "{} | [0]", "{}[] | [0]", "@.{}[]", "{} || 'x'", "{} && 'x'", "!{}", "`false` || {}", "`true` && {}"),
    *("{} == 'x'", "'x' != {}", "{} < `1`", "`1` >= {}", "[{}, 'x']", "[{}][]", "{{k: {}}}", "{{k: {}}}.*", "[{}][?a]"),
    *(
        "({} || 'x')[]",
        "({} && `[]`)[*]",
        "!({}[])",
        "[[{}]][][]",
        "@.[{}][]",
        "*",
        "*[]",
        "*.a",
        "@",
        "@ | *",
        "[@][]",
    ),
)


def readings(name: str) -> Iterator[str]:
    """Yield an expression for each operator, and each pair of operators, that reads a name of the root."""
    for form in _OPERATORS:
        yield form.format(name)
        yield f"({form.format(name)})[]"
        yield f"({form.format(name)})[?a]"
        yield f"({form.format(name)}).*"
    for function, call in calls(name):
        yield call
        yield f"{call}[]"
        yield f"[{call}][?@]"
        if function in {"keys", "values", "to_string", "length", "type", "to_array", "not_null", "items"}:
            yield call.replace(f"({name}", "(@", 1)


def calls(argument: str) -> Iterator[tuple[str, str]]:
    """Yield every function with every argument position taken by an expression, the other ones by plain literals."""
    for name, function in FUNCTIONS.items():
        parameters = function.parameters
        for position, types in enumerate(parameters):
            if EXPREF in types:
                continue
            given = [PLAIN[kinds[0]] for kinds in parameters]
            given[position] = argument
            yield name, f"{name}({', '.join(given)})"
        if function.variadic:
            yield (
                name,
                f"{name}({PLAIN[parameters[0][0]]}, {argument})" if name != "not_null" else f"{name}({argument})",
            )
