"""Lexer of CEL: text to tokens, each with its code point offset.

The pattern is fixed and linear. Keywords that are values or operators (`true`, `in`, ...) are tokens of their own;
other reserved words are identifiers that the parser refuses. This module must never interpret a literal.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pyverno.lang.cel.source import MAX_CODE_POINTS, CompileError, Issue, Source

__all__ = ["EOF", "Token", "tokenize"]

EOF: Final = "<EOF>"

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING: Final = rf"""
    [rR](?:\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|"[^"\n\r]*"|'[^'\n\r]*')
  | \"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"
  | '''(?:{_ESCAPE}|[^\\])*?'''
  | "(?:{_ESCAPE}|[^\\"\n\r])*"
  | '(?:{_ESCAPE}|[^\\'\n\r])*'
"""
_TOKEN: Final = re.compile(
    rf"""
    (?P<SPACE>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<BYTES>[bB](?:{_STRING}))
  | (?P<STRING>{_STRING})
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<OPERATOR>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])
    """,
    re.VERBOSE,
)
_WORDS: Final = frozenset({"true", "false", "null", "in"})


class Token(NamedTuple):
    """One token: its kind (an operator or keyword is its own kind), its text and its offset."""

    kind: str
    text: str
    offset: int


def tokenize(source: Source) -> tuple[Token, ...]:
    """Return the tokens of an expression, ending with EOF.

    Raises CompileError for characters that start no token.

    >>> [token.text for token in tokenize(Source("a.b >= 1u // why"))]
    ['a', '.', 'b', '>=', '1u', '<EOF>']
    """
    text = source.text
    if len(text) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}"
        raise CompileError((Issue(0, message),), source)
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            message = f"Syntax error: token recognition error at: '{_unknown(text, position)}'"
            raise CompileError((Issue(position, message),), source)
        kind = str(match.lastgroup)
        position = match.end()
        if kind != "SPACE":
            word = match.group()
            own_kind = kind == "OPERATOR" or (kind == "IDENTIFIER" and word in _WORDS)
            tokens.append(Token(word if own_kind else kind, word, match.start()))
    tokens.append(Token(EOF, EOF, len(text)))
    return tuple(tokens)


def _unknown(text: str, position: int) -> str:
    """Return what ANTLR names as unreadable: a broken string to its line's end, otherwise one character."""
    if text[position] in "\"'`":
        return text[position:].split("\n", 1)[0]
    return text[position]
