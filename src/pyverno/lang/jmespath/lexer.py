"""Cuts a JMESPath expression into tokens, in one linear pass.

Texts of errors are those of the fork that Kyverno uses.
"""

from __future__ import annotations

import re
from typing import Final

from pyverno.errors import DocumentError, ExpressionSyntaxError
from pyverno.kube.json import decode
from pyverno.lang.jmespath.tokens import PLACEHOLDER_END, PLACEHOLDER_START, Token, TokenType
from pyverno.lazyregex import regex

__all__ = ["tokenize"]

_HOLE: Final = f"{PLACEHOLDER_START}[0-9]{{1,6}}{PLACEHOLDER_END}"
_SCANNER: Final = regex(
    rf"""
      (?P<space>[ \t\n\r]+)
    | (?P<identifier>(?:[A-Za-z_]|{_HOLE})[A-Za-z0-9_]*+(?:{_HOLE}[A-Za-z0-9_]*+)*+)
    | (?P<number>-[0-9]*|[0-9]+)
    | (?P<operator>\[\?|\[\]|\|\||<=|>=|!=|==|&&|[.*,:{{}}\]()@\[|<>!=&])
    | (?P<raw>')
    | (?P<literal>`)
    | (?P<quoted>")
    """,
    re.VERBOSE,
)
# Possessive repeats match the same and remember no place for each character.
_RAW_BODY: Final = regex(r"(?:[^'\\]++|\\.)*+", re.DOTALL)
_QUOTED_BODY: Final = regex(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LITERAL_BODY: Final = regex(r"(?:[^`\\]++|\\.)*+", re.DOTALL)

_OPERATORS: Final[dict[str, TokenType]] = {
    ".": TokenType.DOT,
    "*": TokenType.STAR,
    ",": TokenType.COMMA,
    ":": TokenType.COLON,
    "{": TokenType.LBRACE,
    "}": TokenType.RBRACE,
    "]": TokenType.RBRACKET,
    "(": TokenType.LPAREN,
    ")": TokenType.RPAREN,
    "@": TokenType.CURRENT,
    "[": TokenType.LBRACKET,
    "[?": TokenType.FILTER,
    "[]": TokenType.FLATTEN,
    "|": TokenType.PIPE,
    "||": TokenType.OR,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
    "!": TokenType.NOT,
    "!=": TokenType.NE,
    "=": TokenType.UNKNOWN,
    "==": TokenType.EQ,
    "&": TokenType.EXPREF,
    "&&": TokenType.AND,
}


def tokenize(text: str) -> tuple[Token, ...]:
    """Return the tokens of an expression, closed by one EOF token.

    Raises ExpressionSyntaxError for an unknown character, an unclosed delimiter or a bad escape.

    >>> [token.value for token in tokenize("a.b[0]")]
    ['a', '.', 'b', '[', '0', ']', '']
    """
    tokens: list[Token] = []
    position, end = 0, len(text)
    while position < end:
        found = _SCANNER.match(text, position)
        if found is None:
            raise ExpressionSyntaxError(f"SyntaxError: Unknown char: {_quote_rune(text[position])}", offset=position)
        start, position = position, found.end()
        kind = found.lastgroup
        if kind == "space":
            continue
        if kind == "identifier":
            tokens.append(Token(TokenType.UNQUOTED_IDENTIFIER, found.group(), start))
        elif kind == "number":
            tokens.append(Token(TokenType.NUMBER, found.group(), start))
        elif kind == "operator":
            tokens.append(Token(_OPERATORS[found.group()], found.group(), start))
        else:
            token, position = _DELIMITED[kind or ""](text, start)
            tokens.append(token)
    tokens.append(Token(TokenType.EOF, "", end))
    return tuple(tokens)


def _raw_string(text: str, start: int) -> tuple[Token, int]:
    body, position = _delimited(_RAW_BODY, text, start, "'")
    return Token(TokenType.STRING_LITERAL, body.replace("\\'", "'"), start + 1), position


def _json_literal(text: str, start: int) -> tuple[Token, int]:
    body, position = _delimited(_LITERAL_BODY, text, start, "`")
    return Token(TokenType.JSON_LITERAL, body.replace("\\`", "`"), start + 1), position


def _quoted_identifier(text: str, start: int) -> tuple[Token, int]:
    body, position = _delimited(_QUOTED_BODY, text, start, '"')
    try:
        name = decode(f'"{body}"')
    except DocumentError as error:
        raise ExpressionSyntaxError(error.message, offset=start) from error
    return Token(TokenType.QUOTED_IDENTIFIER, name, start), position


_DELIMITED: Final = {"raw": _raw_string, "literal": _json_literal, "quoted": _quoted_identifier}


def _delimited(body: re.Pattern[str], text: str, start: int, delimiter: str) -> tuple[str, int]:
    found = body.match(text, start + 1)
    stop = found.end() if found else start + 1
    if text[stop : stop + 1] != delimiter:
        raise ExpressionSyntaxError(f"SyntaxError: Unclosed delimiter: {delimiter}", offset=len(text))
    return text[start + 1 : stop], stop + 1


def _quote_rune(char: str) -> str:
    """Quote a character as Go's strconv.QuoteRuneToASCII does."""
    simple = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\v": r"\v", "\\": r"\\", "'": r"\'"}
    code = ord(char)
    if char in simple:
        return f"'{simple[char]}'"
    if code < 0x20 or code == 0x7F:
        return f"'\\x{code:02x}'"
    if code < 0x7F:
        return f"'{char}'"
    return f"'\\u{code:04x}'" if code <= 0xFFFF else f"'\\U{code:08x}'"
