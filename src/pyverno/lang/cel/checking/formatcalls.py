"""Checks of `format` calls whose text and list of values are literals: every clause fits the type of its value.

cel-go does this when it compiles: it refuses `'%d'.format(['a'])`, `'%s'.format([])` and `'%s'.format(['a', 'b'])`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.faults import with_operands
from pyverno.lang.cel.formatclauses import clauses
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.source import Issue
from pyverno.lang.cel.types import Type

__all__ = ["FORMAT", "format_issues"]

FORMAT: Final = "format"
_INTEGERS: Final = frozenset({"int", "uint"})
_DOUBLES: Final = frozenset({"double", "string"})
_TEXTS: Final = _INTEGERS | frozenset(
    {"list", "map", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"}
)
_TAKEN: Final[dict[str, tuple[frozenset[str], str]]] = {
    "s": (
        _TEXTS,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps",
    ),
    "d": (_INTEGERS, "decimal clause can only be used on integers"),
    "f": (_DOUBLES, "fixed-point clause can only be used on doubles"),
    "e": (_DOUBLES, "scientific clause can only be used on doubles"),
    "b": (_INTEGERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "x": (_INTEGERS | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "o": (_INTEGERS, "octal clause can only be used on integers"),
}
"""The kinds of values that each clause takes, and the error for others."""
_NAMES: Final = {"null": "null_type", "timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}


def format_issues(checked: Checked, node: ast.Call) -> Iterator[Issue]:
    """Yield the first mistake of a call of `format`, if its text and its list are literals."""
    text, values = node.target, node.args[0] if len(node.args) == 1 else None
    if not isinstance(text, ast.Literal) or not isinstance(text.value, str) or not isinstance(values, ast.ListLiteral):
        return
    used = 0
    try:
        for clause in clauses(text.value, len(values.elements)):
            if isinstance(clause, str):
                continue
            wrong = _first_wrong(checked, values.elements[used], clause.verb.lower())
            if wrong is not None:
                problem = f"{_TAKEN[clause.verb.lower()][1]}, was given {_type_name(checked.types[wrong.id])}"
                yield Issue(wrong.offset, f"error during formatting: {problem}")
                return
            used += 1
    except EvaluationError as error:
        yield Issue(node.offset, with_operands(error).message)
        return
    if len(values.elements) > used:
        counts = f"(expected {used}, got {len(values.elements)})"
        yield Issue(node.offset, f"too many arguments supplied to string.format {counts}")


def _first_wrong(checked: Checked, node: ast.Node, verb: str) -> ast.Node | None:
    """Return the value that a clause does not take; `%s` also looks into literals of lists and maps."""
    type_ = checked.types[node.id]
    if type_.kind not in ("dyn", "any", "error", "param") and type_.kind not in _TAKEN[verb][0]:
        return node
    if verb != "s":
        return None
    parts: tuple[ast.Node, ...] = ()
    if isinstance(node, ast.ListLiteral):
        parts = node.elements
    elif isinstance(node, ast.MapLiteral):
        parts = tuple(part for entry in node.entries for part in (entry.key, entry.value))
    return next((wrong for part in parts if (wrong := _first_wrong(checked, part, verb)) is not None), None)


def _type_name(type_: Type) -> str:
    return type_.name or _NAMES.get(type_.kind, type_.kind)
