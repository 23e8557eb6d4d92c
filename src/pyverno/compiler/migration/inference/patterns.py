"""Evidence of patterns, and of patches of the same form, about the fields that they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.compiler.migration.inference.evidence import Evidence, type_of
from pyverno.kube.json import JSON
from pyverno.kube.quantity import try_quantity
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.pattern.anchors import GO_SPACE, parse_anchor
from pyverno.lang.pattern.leaf import Operator, split_operator

__all__ = ["read_pattern"]

_SAME: Final = (Operator.EQUAL, Operator.NOT_EQUAL)
_ANY_TEXT: Final = ("", "*", "?*", "null")


def read_pattern(pattern: JSON, found: Evidence, read_text: Callable[[str], object] = str) -> None:
    """Note the evidence of a pattern on a value; `read_text` reads texts with variables.

    >>> found = Evidence()
    >>> read_pattern({"spec": {"=(mode)": "STRICT", "ports": [{"port": ">1024"}]}}, found)
    >>> found.schema()["properties"]["spec"]["properties"]["ports"]["items"]["properties"]["port"]
    {'type': 'integer'}
    """
    match pattern:
        case dict():
            if not pattern:
                found.suspect("object")
            for key, below in pattern.items():
                anchor = parse_anchor(key)
                name = anchor.key if anchor is not None else key
                read_pattern(below, found.entry() if has_wildcard(name) else found.field(name), read_text)
        case list():
            for below in pattern or [None]:
                read_pattern(below, found.element(), read_text)
        case str() if "{{" in pattern:
            read_text(pattern)
        case str():
            _read_leaf(pattern, found)
        case _:
            found.remember(pattern)
            found.show(type_of(pattern))


def _read_leaf(pattern: str, found: Evidence) -> None:
    found.remember(pattern)
    types: set[str] = set()
    for alternative in pattern.split("|"):
        for condition in alternative.split("&"):
            types |= _types_of(condition.strip(" "))
    if types:
        for each in types:
            found.show(each)
    else:
        found.suspect("string")


def _types_of(condition: str) -> set[str]:
    """Return the types of values that a comparison is for; none where any text will do."""
    operator, rest = split_operator(condition)
    operands = rest.replace("!-", "-").split("-") if operator in (Operator.IN_RANGE, Operator.NOT_IN_RANGE) else [rest]
    operands = [each.strip(GO_SPACE) for each in operands]
    if all(each in _ANY_TEXT for each in operands):
        return set()
    if not all(each.replace(".", "", 1).isdecimal() and try_quantity(each) is not None for each in operands):
        return {"string"}
    number = "number" if any("." in each for each in operands) else "integer"
    return {"integer", "string"} if operator in _SAME else {number}
