"""Turns the tokens of a JMESPath expression into its syntax tree: a Pratt parser.

Grammar, binding powers and texts of errors follow the fork of go-jmespath that Kyverno uses, its leniencies included
(commas between function arguments and between hash members may be missing).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from pyverno.errors import DocumentError, ExpressionSyntaxError
from pyverno.kube.json import JSON, decode
from pyverno.lang.jmespath.ast import Node, NodeType, SliceParts
from pyverno.lang.jmespath.lexer import tokenize
from pyverno.lang.jmespath.tokens import BINDING_POWERS, PLACEHOLDER, PLACEHOLDER_END, Token, TokenType
from pyverno.lazyregex import regex

__all__ = ["BARE_PLACEHOLDER", "MAX_DEPTH", "parse"]

MAX_DEPTH: Final = 64
"""How many levels of parentheses, functions, projections and selections may nest."""

BARE_MARK: Final = "\ue002"
BARE_PLACEHOLDER: Final = regex(BARE_MARK + r"([0-9]{1,6})" + PLACEHOLDER_END)
"""A placeholder that stood outside of the texts of a JSON literal, as the whole text of a string."""

# Chains of these grow to the left without nesting: the compiler runs them in one loop.
_FLAT: Final = frozenset({NodeType.SUBEXPRESSION, NodeType.INDEX_EXPRESSION, NodeType.OR, NodeType.AND, NodeType.PIPE})
_STEPS: Final = frozenset({NodeType.SUBEXPRESSION, NodeType.INDEX_EXPRESSION})
_IDENTITY: Final = Node(NodeType.IDENTITY)
_PROJECTION_POWER: Final = 10
_COMPARATORS: Final = (TokenType.EQ, TokenType.NE, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE)


def parse(text: str) -> Node:
    """Return the syntax tree of an expression.

    Raises ExpressionSyntaxError with the fork's text and the offset of the token at fault.

    >>> parse("a.b").children[1].value
    'b'
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = tokenize(text)
        self.index = 0
        self.nesting = 0

    def parse(self) -> Node:
        node = self.expression(0)
        if self.current is not TokenType.EOF:
            raise self.error(f"Unexpected token at the end of the expression: {self.current.value}")
        return node

    # --- tokens -----------------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    @property
    def current(self) -> TokenType:
        return self.tokens[self.index].type

    def lookahead(self) -> TokenType:
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)].type

    def advance(self) -> Token:
        token = self.tokens[self.index]
        if token.type is not TokenType.EOF:
            self.index += 1
        return token

    def match(self, kind: TokenType) -> Token:
        if self.current is not kind:
            raise self.error(f"Expected {kind.value}, received: {self.current.value}")
        return self.advance()

    def error(self, message: str, token: Token | None = None) -> ExpressionSyntaxError:
        return ExpressionSyntaxError(f"SyntaxError: {message}", offset=(token or self.token).position)

    def node(self, kind: NodeType, value: JSON = None, children: tuple[Node, ...] = ()) -> Node:
        depth = 0
        for child in children:
            flat = child is children[0] and kind in _FLAT and (child.type is kind or {child.type, kind} <= _STEPS)
            depth = max(depth, child.depth - 1 if flat else child.depth)
        if depth >= MAX_DEPTH:
            raise self.error("expression is nested too deeply")
        return Node(kind, value, children, depth + 1)

    # --- expressions ------------------------------------------------------------------------------------------------

    def expression(self, power: int) -> Node:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.error("expression is nested too deeply")
        token = self.advance()
        prefix = _PREFIX.get(token.type)
        if prefix is None:
            raise self.error(f"Invalid token: {token.type.value}", token)
        left = prefix(self, token)
        while power < BINDING_POWERS[self.current]:
            token = self.advance()
            infix = _INFIX.get(token.type)
            if infix is None:
                raise self.error(f"Unexpected token: {token.type.value}")
            left = infix(self, left, token)
        self.nesting -= 1
        return left

    # --- prefix -----------------------------------------------------------------------------------------------------

    def incomplete(self, token: Token) -> Node:
        raise self.error("Incomplete expression", token)

    def json_literal(self, token: Token) -> Node:
        text = token.value
        try:
            value = decode(_mark_bare_placeholders(text) if PLACEHOLDER.search(text) else text)
        except DocumentError as error:
            raise ExpressionSyntaxError(error.message, offset=token.position) from error
        return self.node(NodeType.LITERAL, value)

    def string_literal(self, token: Token) -> Node:
        return self.node(NodeType.LITERAL, token.value)

    def identifier(self, token: Token) -> Node:
        return self.node(NodeType.FIELD, token.value)

    def quoted_identifier(self, token: Token) -> Node:
        if self.current is TokenType.LPAREN:
            raise self.error("Can't have quoted identifier as function Name.", token)
        return self.node(NodeType.FIELD, token.value)

    def star(self, _token: Token) -> Node:
        if self.current is TokenType.RBRACKET:
            right = _IDENTITY
        else:
            right = self.projection_right(BINDING_POWERS[TokenType.STAR])
        return self.node(NodeType.VALUE_PROJECTION, children=(_IDENTITY, right))

    def bare_filter(self, token: Token) -> Node:
        return self.filter(_IDENTITY, token)

    def bare_flatten(self, token: Token) -> Node:
        return self.flatten(_IDENTITY, token)

    def bare_bracket(self, token: Token) -> Node:
        if self.starts_index():
            return self.index_expression(_IDENTITY)
        if self.current is TokenType.STAR and self.lookahead() is TokenType.RBRACKET:
            return self.bracket(_IDENTITY, token)
        return self.multi_select_list()

    def multi_select_hash(self, _token: Token | None = None) -> Node:
        members: list[Node] = []
        while True:
            key = self.token
            if key.type not in (TokenType.UNQUOTED_IDENTIFIER, TokenType.QUOTED_IDENTIFIER):
                raise self.error("Expected tQuotedIdentifier or tUnquotedIdentifier")
            self.advance()
            self.match(TokenType.COLON)
            members.append(self.node(NodeType.KEY_VALUE, key.value, (self.expression(0),)))
            # COMPAT: the fork continues with the next member even when the comma is missing
            if self.current is TokenType.COMMA:
                self.advance()
            elif self.current is TokenType.RBRACE:
                self.advance()
                return self.node(NodeType.MULTI_SELECT_HASH, children=tuple(members))

    def multi_select_list(self) -> Node:
        members = [self.expression(0)]
        while self.current is not TokenType.RBRACKET:
            self.match(TokenType.COMMA)
            members.append(self.expression(0))
        self.match(TokenType.RBRACKET)
        return self.node(NodeType.MULTI_SELECT_LIST, children=tuple(members))

    def current_node(self, _token: Token) -> Node:
        return self.node(NodeType.CURRENT)

    def expression_reference(self, _token: Token) -> Node:
        return self.node(NodeType.EXPREF, children=(self.expression(BINDING_POWERS[TokenType.EXPREF]),))

    def negation(self, _token: Token) -> Node:
        return self.node(NodeType.NOT, children=(self.expression(BINDING_POWERS[TokenType.NOT]),))

    def parentheses(self, _token: Token) -> Node:
        node = self.expression(0)
        self.match(TokenType.RPAREN)
        return node

    # --- infix ------------------------------------------------------------------------------------------------------

    def dot(self, left: Node, _token: Token) -> Node:
        if self.current is not TokenType.STAR:
            right = self.dot_right(BINDING_POWERS[TokenType.DOT])
            return self.node(NodeType.SUBEXPRESSION, children=(left, right))
        self.advance()
        right = self.projection_right(BINDING_POWERS[TokenType.DOT])
        return self.node(NodeType.VALUE_PROJECTION, children=(left, right))

    def binary(self, left: Node, token: Token) -> Node:
        right = self.expression(BINDING_POWERS[token.type])
        return self.node(_BINARY[token.type], children=(left, right))

    def comparison(self, left: Node, token: Token) -> Node:
        right = self.expression(BINDING_POWERS[token.type])
        return self.node(NodeType.COMPARATOR, token.type.value, (left, right))

    def call(self, left: Node, token: Token) -> Node:
        if left.type is not NodeType.FIELD or PLACEHOLDER.search(left.value):
            # the fork runs into an internal failure here, or takes a literal's text as the name
            raise self.error(f"Unexpected token: {token.type.value}", token)
        arguments: list[Node] = []
        # COMPAT: the fork takes `f(a b)` and `f(a,)` as well
        while self.current is not TokenType.RPAREN:
            arguments.append(self.expression(0))
            if self.current is TokenType.COMMA:
                self.advance()
        self.match(TokenType.RPAREN)
        return self.node(NodeType.FUNCTION, left.value, tuple(arguments))

    def filter(self, left: Node, _token: Token) -> Node:
        condition = self.expression(0)
        self.match(TokenType.RBRACKET)
        if self.current is TokenType.FLATTEN:
            right = _IDENTITY
        else:
            right = self.projection_right(BINDING_POWERS[TokenType.FILTER])
        return self.node(NodeType.FILTER_PROJECTION, children=(left, right, condition))

    def flatten(self, left: Node, _token: Token) -> Node:
        flat = self.node(NodeType.FLATTEN, children=(left,))
        right = self.projection_right(BINDING_POWERS[TokenType.FLATTEN])
        return self.node(NodeType.PROJECTION, children=(flat, right))

    def bracket(self, left: Node, _token: Token) -> Node:
        if self.starts_index():
            return self.index_expression(left)
        self.match(TokenType.STAR)
        self.match(TokenType.RBRACKET)
        right = self.projection_right(BINDING_POWERS[TokenType.STAR])
        return self.node(NodeType.PROJECTION, children=(left, right))

    # --- pieces -----------------------------------------------------------------------------------------------------

    def dot_right(self, power: int) -> Node:
        if self.current in (TokenType.QUOTED_IDENTIFIER, TokenType.UNQUOTED_IDENTIFIER, TokenType.STAR):
            return self.expression(power)
        if self.current is TokenType.LBRACKET:
            self.advance()
            return self.multi_select_list()
        if self.current is TokenType.LBRACE:
            self.advance()
            return self.multi_select_hash()
        raise self.error("Expected identifier, lbracket, or lbrace")

    def projection_right(self, power: int) -> Node:
        if BINDING_POWERS[self.current] < _PROJECTION_POWER:
            return _IDENTITY
        if self.current in (TokenType.LBRACKET, TokenType.FILTER):
            return self.expression(power)
        if self.current is TokenType.DOT:
            self.advance()
            return self.dot_right(power)
        raise self.error("Error")

    def starts_index(self) -> bool:
        """A number or colon follows, or a lone placeholder, which stands for a number between brackets."""
        if self.current in (TokenType.NUMBER, TokenType.COLON):
            return True
        return _is_hole(self.token) and self.lookahead() in (TokenType.RBRACKET, TokenType.COLON)

    def index_expression(self, left: Node) -> Node:
        if self.current is TokenType.COLON or self.lookahead() is TokenType.COLON:
            parts = self.slice_parts()
            right = self.node(NodeType.SLICE, parts)
            indexed = self.node(NodeType.INDEX_EXPRESSION, children=(left, right))
            projected = self.projection_right(BINDING_POWERS[TokenType.STAR])
            return self.node(NodeType.PROJECTION, children=(indexed, projected))
        right = self.node(NodeType.INDEX, self.number())
        self.match(TokenType.RBRACKET)
        return self.node(NodeType.INDEX_EXPRESSION, children=(left, right))

    def slice_parts(self) -> SliceParts:
        parts: list[int | str | None] = [None, None, None]
        index = 0
        while self.current is not TokenType.RBRACKET and index < 3:
            if self.current is TokenType.COLON:
                index += 1
                self.advance()
            elif self.current is TokenType.NUMBER or _is_hole(self.token):
                parts[index] = self.number()
            else:
                raise self.error(f"Expected tColon or tNumber, received: {self.current.value}")
        self.match(TokenType.RBRACKET)
        return parts[0], parts[1], parts[2]

    def number(self) -> int | str:
        token = self.advance()
        if token.type is TokenType.UNQUOTED_IDENTIFIER:
            return token.value
        # Go: strconv.Atoi and its errors
        if token.value == "-":
            raise ExpressionSyntaxError('strconv.Atoi: parsing "-": invalid syntax', offset=token.position)
        if len(token.value) > 20 or not -(1 << 63) <= int(token.value) < 1 << 63:
            text = f'strconv.Atoi: parsing "{token.value}": value out of range'
            raise ExpressionSyntaxError(text, offset=token.position)
        return int(token.value)


_PREFIX: Final[dict[TokenType, Callable[[_Parser, Token], Node]]] = {
    TokenType.JSON_LITERAL: _Parser.json_literal,
    TokenType.STRING_LITERAL: _Parser.string_literal,
    TokenType.UNQUOTED_IDENTIFIER: _Parser.identifier,
    TokenType.QUOTED_IDENTIFIER: _Parser.quoted_identifier,
    TokenType.STAR: _Parser.star,
    TokenType.FILTER: _Parser.bare_filter,
    TokenType.LBRACE: _Parser.multi_select_hash,
    TokenType.FLATTEN: _Parser.bare_flatten,
    TokenType.LBRACKET: _Parser.bare_bracket,
    TokenType.CURRENT: _Parser.current_node,
    TokenType.EXPREF: _Parser.expression_reference,
    TokenType.NOT: _Parser.negation,
    TokenType.LPAREN: _Parser.parentheses,
    TokenType.EOF: _Parser.incomplete,
}
_INFIX: Final[Mapping[TokenType, Callable[[_Parser, Node, Token], Node]]] = {
    TokenType.DOT: _Parser.dot,
    TokenType.PIPE: _Parser.binary,
    TokenType.OR: _Parser.binary,
    TokenType.AND: _Parser.binary,
    TokenType.LPAREN: _Parser.call,
    TokenType.FILTER: _Parser.filter,
    TokenType.FLATTEN: _Parser.flatten,
    TokenType.LBRACKET: _Parser.bracket,
    **dict.fromkeys(_COMPARATORS, _Parser.comparison),
}
_BINARY: Final = {TokenType.PIPE: NodeType.PIPE, TokenType.OR: NodeType.OR, TokenType.AND: NodeType.AND}


def _is_hole(token: Token) -> bool:
    return token.type is TokenType.UNQUOTED_IDENTIFIER and PLACEHOLDER.fullmatch(token.value) is not None


def _mark_bare_placeholders(text: str) -> str:
    """Quote every placeholder outside the texts of a JSON literal; its first mark distinguishes it from other texts."""
    parts = re.split(r'("(?:\\.|[^"\\])*")', text)
    parts[::2] = [PLACEHOLDER.sub(f'"{BARE_MARK}\\1{PLACEHOLDER_END}"', part) for part in parts[::2]]
    return "".join(parts)
