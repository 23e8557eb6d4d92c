"""Changes of CEL expressions: operators, operands dropped, conditions of `?:`, macros and constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.compiler.branches.expressions import parse_any
from pyverno.compiler.mutants.mutant import Changes, replaced
from pyverno.compiler.mutants.values import format_value
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.spans import Spans
from pyverno.value import dataclass

__all__ = ["Edit", "expression_changes", "expression_edits"]

_OPERATORS: Final = {
    "_==_": ("==", "!="),
    "_!=_": ("!=", "=="),
    "_<_": ("<", "<="),
    "_<=_": ("<=", "<"),
    "_>_": (">", ">="),
    "_>=_": (">=", ">"),
    "_+_": ("+", "-"),
    "_-_": ("-", "+"),
}
_LOGICAL: Final = {"_&&_": ("&&", "||"), "_||_": ("||", "&&")}
_MACROS: Final = {"all": "exists", "exists": "all"}
_COMPARED: Final = frozenset({"_==_", "_!=_", "@in", "startsWith", "endsWith", "contains"})
_DEFAULTS: Final = ("orValue", "__orValueCompat__")
_PAIR: Final = 2
_MUTANT: Final = "-mutant"


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """At `start` of an expression the text `old` becomes `new`."""

    start: int
    old: str
    new: str

    def apply(self, text: str) -> str:
        """Return the changed expression."""
        return text[: self.start] + self.new + text[self.start + len(self.old) :]


def expression_changes(text: JSON, place: FieldPath) -> Changes:
    """Yield the changes of one expression of a policy."""
    if not isinstance(text, str):
        return
    for edit in expression_edits(text):
        what = (
            f"{format_value(edit.old)} becomes {format_value(edit.new)}"
            if edit.new
            else f"{format_value(edit.old)} is dropped"
        )
        yield replaced(place, edit.apply(text), what, edit.start)


def expression_edits(text: str) -> tuple[Edit, ...]:
    """Return the edits of an expression in the order of its text.

    >>> [edit.apply("a > 1 && b") for edit in expression_edits("a > 1 && b")]
    ['a > 1', 'b', 'a >= 1 && b', 'a > 0 && b', 'a > 2 && b', 'a > 1 || b']
    """
    root = parse_any(text)
    if root is None:
        return ()
    spans = Spans(text, root)
    idle = {id(default) for node in ast.walk(root) for default in _idle_defaults(node)}
    found = {edit: None for node in ast.walk(root) if id(node) not in idle for edit in _of_node(node, text, spans)}
    own = [edit for edit in found if text.startswith(edit.old, edit.start) and edit.old != edit.new]
    return tuple(sorted(own, key=lambda edit: (edit.start, edit.new)))


def _idle_defaults(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the default of `x.orValue('') == 'a'`, `x.orValue('') in ['a', 'b']` and the like.

    Where neither it nor its mutant is what it is compared with, both give the same for every object.
    """
    if not isinstance(node, ast.Call) or node.function not in _COMPARED:
        return
    operands = [each for each in (node.target, *node.args) if each is not None]
    if len(operands) != _PAIR:
        return
    swapped = operands[::-1] if node.function in ("_==_", "_!=_") else []
    for subject, other in (operands, *([swapped] if swapped else [])):
        default = _default(subject)
        constants = other.elements if isinstance(other, ast.ListLiteral) else (other,)
        texts = [each.value for each in constants if isinstance(each, ast.Literal) and isinstance(each.value, str)]
        if default is None or len(texts) != len(constants):
            continue
        old = str(default.value)
        if not any(_matches(node.function, each, text) for text in texts for each in (old, old + _MUTANT)):
            yield default


def _default(node: ast.Node) -> ast.Literal | None:
    if isinstance(node, ast.Call) and node.function in _DEFAULTS:
        only = node.args[-1]
        return only if isinstance(only, ast.Literal) and isinstance(only.value, str) else None
    return None


def _matches(function: str, value: str, text: str) -> bool:
    """Return whether the comparison of two constants may hold."""
    return value == text if function in ("_==_", "_!=_", "@in") else text in value


def _of_node(node: ast.Node, text: str, spans: Spans) -> Iterator[Edit]:
    match node:
        case ast.Logical():
            yield from _of_logical(node, text, spans)
        case ast.Ternary():
            condition = spans.text(node.condition)
            yield from (Edit(spans.start(node.condition), condition, constant) for constant in ("true", "false"))
        case ast.Call(function="!_") if node.args:
            whole, inner = spans.text(node), spans.text(node.args[0])
            if not text.startswith("(", spans.start(node)):
                yield Edit(spans.start(node), whole, inner if inner.isidentifier() else f"({inner})")
        case ast.Call() if node.function in _OPERATORS:
            old, new = _OPERATORS[node.function]
            yield Edit(node.offset, old, new)
        case ast.Comprehension() if node.kind in _MACROS:
            at = text.rfind(node.kind, 0, node.offset + 1)
            if at >= 0 and not text[at + len(node.kind) : node.offset].strip():
                yield Edit(at, node.kind, _MACROS[node.kind])
        case ast.Literal():
            yield from _of_literal(node, text, spans)
        case ast.ListLiteral() if len(node.elements) > 1 and spans.span(node) is not None:
            yield from _of_list(node, text, spans)
        case _:
            return


def _of_logical(node: ast.Logical, text: str, spans: Spans) -> Iterator[Edit]:
    """Yield the other operator between terms, and the expression without each of its terms."""
    old, new = _LOGICAL[node.operator]
    starts = [spans.start(term) for term in node.terms]
    ends = [start + len(spans.text(term)) for start, term in zip(starts, node.terms, strict=True)]
    if len(node.terms) == _PAIR:
        # the terms with the parentheses around them reach as far as the operator
        at = _find_operator(text, ends[0], starts[1], old)
        if at >= 0:
            yield Edit(at, old, new)
    first, last = spans.start(node), spans.start(node) + len(spans.text(node))
    for index in range(len(node.terms)):
        rest = [f"({spans.text(term)})" for other, term in enumerate(node.terms) if other != index]
        joined = f" {old} ".join(rest) if len(rest) > 1 else spans.text(node.terms[1 - index])
        yield Edit(first, text[first:last], joined)


def _find_operator(text: str, start: int, end: int, operator: str) -> int:
    at = text.find(operator, start, end)
    return at if at >= 0 and not text[start:at].strip(" \t\r\n)") else -1


def _of_literal(node: ast.Literal, text: str, spans: Spans) -> Iterator[Edit]:
    at, written = spans.start(node), spans.text(node)
    value = node.value
    if isinstance(value, bool):
        yield Edit(at, written, "false" if value else "true")
    elif isinstance(value, int) and written.lstrip("-").isdigit():
        yield from (Edit(at, written, str(other)) for other in (value + 1, value - 1) if other >= 0 or value < 0)
    elif isinstance(value, str) and written[:1] in ("'", '"') and not written.startswith(("'''", '"""')):
        yield Edit(at, written, f"{written[:-1]}{_MUTANT}{written[-1]}")


def _of_list(node: ast.ListLiteral, text: str, spans: Spans) -> Iterator[Edit]:
    first = spans.start(node)
    whole = spans.text(node)
    texts = [spans.text(each) for each in node.elements]
    if node.optionals or not all(isinstance(each, ast.Literal) for each in node.elements):
        return
    for index, each in enumerate(texts):
        if texts.count(each) == 1:
            yield Edit(first, whole, f"[{', '.join(other for number, other in enumerate(texts) if number != index)}]")
