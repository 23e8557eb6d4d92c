"""Checks of literals at compile time, as Kubernetes does since 1.29.

`duration('x')`, `timestamp('x')` and `s.matches('[')` do not compile, nor do lists and maps whose elements differ in
type even where dyn would allow them, except inside `format` calls. This module must never check anything that is not
written in the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel import ast
from pyverno.lang.cel.checker import Checked
from pyverno.lang.cel.regex import check_pattern
from pyverno.lang.cel.source import Issue
from pyverno.lang.cel.times import parse_duration, parse_timestamp
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.unification import unwrap_optional

__all__ = ["literal_issues"]

_CHECKS: Final[dict[str, tuple[Callable[[str], object], int]]] = {
    "duration": (parse_duration, 0),
    "timestamp": (parse_timestamp, 0),
    "matches": (check_pattern, 0),
}
_EXEMPT: Final = frozenset({"format"})


def literal_issues(checked: Checked, *, homogeneous: bool, formats: bool) -> tuple[Issue, ...]:
    """Return what is wrong with the literals of a checked expression: mixed types, texts that do not parse."""
    found = tuple(_formats(checked.root)) if formats else ()
    return (*found, *_mixtures(checked)) if homogeneous else found


def _formats(root: ast.Node) -> Iterator[Issue]:
    for node in ast.walk(root):
        if not isinstance(node, ast.Call) or node.function not in _CHECKS or not node.args:
            continue
        check, position = _CHECKS[node.function]
        if node.function == "matches" and node.target is None:
            position = 1
        argument = node.args[position] if position < len(node.args) else None
        if not isinstance(argument, ast.Literal) or not isinstance(argument.value, str):
            continue
        try:
            check(argument.value)
        except EvaluationError:
            yield Issue(argument.offset, f"invalid {node.function} argument")


def _mixtures(checked: Checked) -> Iterator[Issue]:
    waiting: list[ast.Node] = [checked.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and node.function in _EXEMPT:
            continue
        if isinstance(node, ast.ListLiteral):
            yield from _differing(
                checked, [(item, position in node.optionals) for position, item in enumerate(node.elements)]
            )
        elif isinstance(node, ast.MapLiteral):
            yield from _differing(checked, [(entry.key, False) for entry in node.entries])
            yield from _differing(checked, [(entry.value, entry.optional) for entry in node.entries])
        waiting.extend(ast.children(node))


def _differing(checked: Checked, items: list[tuple[ast.Node, bool]]) -> Iterator[Issue]:
    first: Type | None = None
    for node, optional in items:
        type_ = checked.types[node.id]
        if optional:
            type_ = unwrap_optional(type_)[0]
        if first is None:
            first = type_
        elif type_ != first:
            yield Issue(node.offset, f"expected type '{first}' but found '{type_}'")
            return
