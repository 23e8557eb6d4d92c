"""The parts of a CEL expression that decide: operands of `&&` and `||`, and conditions of `?:`."""

from __future__ import annotations

from functools import lru_cache

from pyverno.errors import PyvernoError
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.macros import (
    BINDINGS_MACROS,
    OPTIONAL_MACROS,
    OR_VALUE_MACROS,
    SORT_BY_MACROS,
    STANDARD_MACROS,
    TWO_VARIABLE_MACROS,
)
from pyverno.lang.cel.syntax.parser import parse
from pyverno.lang.cel.syntax.source import Source
from pyverno.lang.cel.syntax.spans import Spans
from pyverno.value import dataclass

__all__ = ["DecidingPart", "deciding_parts", "parse_any"]

_MACROS = {
    **STANDARD_MACROS,
    **TWO_VARIABLE_MACROS,
    **BINDINGS_MACROS,
    **OPTIONAL_MACROS,
    **SORT_BY_MACROS,
    **OR_VALUE_MACROS,
}


@dataclass(frozen=True, slots=True)
class DecidingPart:
    """A sub-expression that is true or false: `node` is the offset that traces know it by, `start` where it begins."""

    number: int
    node: int
    start: int
    text: str


def parse_any(text: str) -> ast.Node | None:
    """Return the tree of an expression with the macros of all environments; None when it does not parse."""
    try:
        return parse(Source(text), _MACROS)
    except PyvernoError:
        return None  # the compiler reports it


@lru_cache(maxsize=256)
def deciding_parts(text: str) -> tuple[DecidingPart, ...]:
    """Return the parts of an expression that decide, in the order of the text.

    >>> [part.text for part in deciding_parts("!has(a.b) || (a.b > 1 && a.c) ? x : y")]
    ['!has(a.b) || (a.b > 1 && a.c)', '!has(a.b)', 'a.b > 1', 'a.c']
    """
    root = parse_any(text)
    if root is None:
        return ()
    nodes = list(dict.fromkeys(node for each in ast.walk(root) for node in _decided_by(each)))
    if not nodes:
        return ()
    spans = Spans(text, root)
    found = [DecidingPart(0, node.offset, spans.start(node), spans.text(node)) for node in nodes]
    ordered = sorted(found, key=lambda part: (part.start, -len(part.text)))
    return tuple(DecidingPart(number, each.node, each.start, each.text) for number, each in enumerate(ordered))


def _decided_by(node: ast.Node) -> tuple[ast.Node, ...]:
    if isinstance(node, ast.Logical):
        # an operand that is logical itself is true or false by its own operands
        return tuple(term for term in node.terms if not isinstance(term, (ast.Logical, ast.Literal)))
    if isinstance(node, ast.Ternary) and not isinstance(node.condition, ast.Literal):
        return (node.condition,)
    return ()
