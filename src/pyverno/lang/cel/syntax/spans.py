"""Maps each node of an expression's tree to its source text.

Nodes know one place each, such as the operator; the text around it is found through the tokens.
"""

from __future__ import annotations

from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.syntax.lexer import EOF, tokenize
from pyverno.lang.cel.syntax.source import Source

__all__ = ["Span", "Spans"]

Span = tuple[int, int]
"""The indexes of the first and the last token."""

_OPENING = {"(": ")", "[": "]", "{": "}"}
_NO_OPERAND = frozenset("([{,:?!-+*/%<>") | {"<=", ">=", "==", "!=", "&&", "||", "in", ".", EOF}


class Spans:
    """The spans of all nodes of one tree.

    >>> from pyverno.lang.cel import STANDARD
    >>> root = STANDARD.check("(1 + 2) * size('a')").root
    >>> [Spans("(1 + 2) * size('a')", root).text(node) for node in ast.walk(root) if isinstance(node, ast.Call)]
    ["(1 + 2) * size('a')", '1 + 2', "size('a')"]
    """

    __slots__ = ("_partner", "_source", "_spans", "_starts", "_tokens")

    def __init__(self, text: str, root: ast.Node) -> None:
        self._source = text
        self._tokens = tokenize(Source(text))
        self._starts = {token.offset: index for index, token in enumerate(self._tokens)}
        self._partner = self._partners()
        self._spans: dict[int, Span] = {}
        for node in reversed(tuple(ast.walk(root))):
            self._spans[node.id] = self._span(node)

    def text(self, node: ast.Node) -> str:
        """Return the text of a node."""
        first, last = self._spans[node.id]
        token = self._tokens[last]
        return self._source[self._tokens[first].offset : token.offset + len(token.text)]

    def start(self, node: ast.Node) -> int:
        """Return the offset where the text of a node starts."""
        return self._tokens[self._spans[node.id][0]].offset

    def span(self, node: ast.Node) -> Span | None:
        """Return the first and the last token of a node; None for a list that is the arguments of a macro."""
        span = self._spans[node.id]
        is_arguments = isinstance(node, ast.ListLiteral) and self._tokens[span[0]].kind == "("
        return None if is_arguments else span

    def _partners(self) -> dict[int, int]:
        partners: dict[int, int] = {}
        waiting: list[int] = []
        for index, token in enumerate(self._tokens):
            if token.kind in _OPENING:
                waiting.append(index)
            elif token.kind in _OPENING.values() and waiting:
                opening = waiting.pop()
                partners[opening], partners[index] = index, opening
        return partners

    def _span(self, node: ast.Node) -> Span:
        at = self._starts.get(node.offset, 0)
        kind = self._tokens[at].kind
        if isinstance(node, (ast.ListLiteral, ast.MapLiteral)):
            return at, self._partner[at]
        if isinstance(node, ast.Ident):
            return (at - 1 if node.name.startswith(".") and kind != "." else at), at + (kind == ".")
        if isinstance(node, ast.Literal):
            return at, at + (kind == "-")
        if kind in _OPENING:
            return self._postfix_start(at - 1), self._partner[at]
        if kind == ".":
            return self._postfix_start(at - 1), at + 1 + (self._tokens[at + 1].kind == "?")
        return self._operation(node, at)

    def _operation(self, node: ast.Node, at: int) -> Span:
        """Return the span from the first operand to the last, with the parentheses around those."""
        operands = tuple(ast.children(node))
        if not operands:
            return at, at
        last = self._widen(operands[-1])[1]
        return (at, last) if len(operands) == 1 else (self._widen(operands[0])[0], last)

    def _widen(self, node: ast.Node) -> Span:
        first, last = self._spans[node.id]
        while first and self._tokens[first - 1].kind == "(" and self._partner.get(first - 1) == last + 1:
            first, last = first - 1, last + 1
        return first, last

    def _postfix_start(self, index: int) -> int:
        """Return where the chain of selections, indexes and calls starts that ends with a token."""
        while True:
            opening = self._partner.get(index)
            if opening is not None:
                before = self._tokens[opening - 1].kind if opening else EOF
                if before in _NO_OPERAND or (self._tokens[opening].kind == "(" and before != "IDENTIFIER"):
                    return opening
                index = opening - 1
                continue
            dot = index - 1 if index and self._tokens[index - 1].kind != "?" else index - 2
            if dot < 0 or self._tokens[dot].kind != ".":
                return index
            if dot == 0 or self._tokens[dot - 1].kind in _NO_OPERAND:
                return dot
            index = dot - 1
