"""The words of a JMESPath expression: token types, the token value, and the marks of placeholders.

A placeholder is a nested template variable that the template language cut out of the expression; it is as
``\\ue000N\\ue001`` with N its index. This module must never read an expression (see `lexer`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from pyverno.lazyregex import regex

__all__ = ["BINDING_POWERS", "PLACEHOLDER", "PLACEHOLDER_END", "PLACEHOLDER_START", "Token", "TokenType"]

PLACEHOLDER_START: Final = "\ue000"
PLACEHOLDER_END: Final = "\ue001"
PLACEHOLDER: Final = regex(PLACEHOLDER_START + r"([0-9]{1,6})" + PLACEHOLDER_END)
"""One placeholder inside a text; group 1 is its index."""


class TokenType(Enum):
    """Kinds of tokens; the values are the names that syntax errors show."""

    UNKNOWN = "tUnknown"
    STAR = "tStar"
    DOT = "tDot"
    FILTER = "tFilter"
    FLATTEN = "tFlatten"
    LPAREN = "tLparen"
    RPAREN = "tRparen"
    LBRACKET = "tLbracket"
    RBRACKET = "tRbracket"
    LBRACE = "tLbrace"
    RBRACE = "tRbrace"
    OR = "tOr"
    PIPE = "tPipe"
    NUMBER = "tNumber"
    UNQUOTED_IDENTIFIER = "tUnquotedIdentifier"
    QUOTED_IDENTIFIER = "tQuotedIdentifier"
    COMMA = "tComma"
    COLON = "tColon"
    LT = "tLT"
    LTE = "tLTE"
    GT = "tGT"
    GTE = "tGTE"
    EQ = "tEQ"
    NE = "tNE"
    JSON_LITERAL = "tJSONLiteral"
    STRING_LITERAL = "tStringLiteral"
    CURRENT = "tCurrent"
    EXPREF = "tExpref"
    AND = "tAnd"
    NOT = "tNot"
    EOF = "tEOF"


class Token(NamedTuple):
    """One token: its kind, its decoded text, and its offset in code points."""

    type: TokenType
    value: str
    position: int


# Go-JMESPath: parser.go, the table of a Pratt parser. Kinds not named bind with 0.
BINDING_POWERS: Final[dict[TokenType, int]] = dict.fromkeys(TokenType, 0) | {
    TokenType.PIPE: 1,
    TokenType.OR: 2,
    TokenType.AND: 3,
    TokenType.EQ: 5,
    TokenType.LT: 5,
    TokenType.LTE: 5,
    TokenType.GT: 5,
    TokenType.GTE: 5,
    TokenType.NE: 5,
    TokenType.FLATTEN: 9,
    TokenType.STAR: 20,
    TokenType.FILTER: 21,
    TokenType.DOT: 40,
    TokenType.NOT: 45,
    TokenType.LBRACE: 50,
    TokenType.LBRACKET: 55,
    TokenType.LPAREN: 60,
}
