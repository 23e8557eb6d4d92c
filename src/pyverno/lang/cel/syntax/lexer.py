"""Lexer of CEL: text to tokens, each with its code point offset.

The pattern is fixed and linear. Keywords that are values or operators (`true`, `in`, ...) are tokens of their own;
other reserved words are identifiers that the parser refuses.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, NamedTuple

from pyverno.lang.cel.syntax.source import MAX_CODE_POINTS, CompileError, Issue, Source
from pyverno.lazyregex import regex

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
_TOKEN: Final = regex(
    rf"""
    (?:(?P<IDENTIFIER>(?![bB]?[rR]?["'])[A-Za-z_][A-Za-z0-9_]*)
  | (?P<OPERATOR>==|!=|<=|>=|&&|\|\||[\[\]{{}}(),\-!?:+*%<>]|\.(?![0-9])|/(?!/))
  | (?P<SPACE>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<BYTES>[bB](?:{_STRING}))
  | (?P<STRING>{_STRING})
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<PREFIX>[bBrR][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<UNREADABLE>(?s:.))
    )[\t\ \r\n\f]*
    """,
    re.VERBOSE,
)
_WORDS: Final = frozenset({"true", "false", "null", "in"})
# by the number of the group; a prefix is of a text that does not begin
_KINDS: Final = (
    "", "IDENTIFIER", "OPERATOR", "SPACE", "BYTES", "STRING", "NUM_FLOAT", "NUM_UINT", "NUM_INT", "IDENTIFIER",
    "ESC_IDENTIFIER", "UNREADABLE",
)  # fmt: skip
_OPERATOR: Final = _KINDS.index("OPERATOR")
_SPACE: Final = _KINDS.index("SPACE")
_UNREADABLE: Final = _KINDS.index("UNREADABLE")


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
    new, words = partial(tuple.__new__, Token), _WORDS
    for match in _TOKEN.finditer(text):
        group = match.lastindex
        if group == _UNREADABLE:
            break  # without it the search would try every later quote, each to the end of the text
        start, position = match.span()
        if group == _SPACE or group is None:
            continue
        word = match[group]
        kind = word if group == _OPERATOR or word in words else _KINDS[group]
        tokens.append(new((kind, word, start)))
    if position < len(text):
        message = f"Syntax error: token recognition error at: '{_unknown(text, position)}'"
        raise CompileError((Issue(position, message),), source)
    tokens.append(Token(EOF, EOF, len(text)))
    return tuple(tokens)


def _unknown(text: str, position: int) -> str:
    """Return what ANTLR names as unreadable: a broken string to its line's end, otherwise one character."""
    if text[position] in "\"'`":
        return text[position:].split("\n", 1)[0]
    return text[position]
