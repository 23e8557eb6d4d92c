"""Texts in a pattern that are data: compared as they are, and never read as operators, wildcards or anchors.

A text that nothing reads in another way stays as it is. This module must never know where a text comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.kube.json import JSON
from pyverno.lang.pattern.anchors import Literal
from pyverno.lazyregex import regex

__all__ = ["Literal", "as_literal", "as_literal_within", "as_plain", "as_plain_within"]

_SYNTAX = regex(r"[*?|&!<>()-]")
_WITHIN = regex(r"[*?|&!<>()]")
_PLAIN = regex(r"[A-Za-z0-9_/:@.=,~ -]*")
_RANGE = regex(r"[-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+!?-[-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+")


def as_literal(value: JSON) -> JSON:
    """Return a value of data as a pattern of itself: texts and keys with syntax are literals.

    >>> type(as_literal({"a*": "web"}).popitem()[0]).__name__, type(as_literal("web")).__name__
    ('Literal', 'str')
    """
    if isinstance(value, str):
        return Literal(value) if _SYNTAX.search(value) else value
    if isinstance(value, dict):
        return {as_literal(key): as_literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_literal(item) for item in value]
    return value


def as_literal_within(text: str, pieces: Sequence[str]) -> str:
    """Return a text of the policy that holds pieces of data: a literal where a piece adds syntax to it.

    >>> type(as_literal_within("web-*", ["web"])).__name__, type(as_literal_within("*-*", ["*"])).__name__
    ('str', 'Literal')
    >>> type(as_literal_within("1-5Gi", ["1-5"])).__name__
    'Literal'
    """
    adds = any(_WITHIN.search(piece) for piece in pieces)
    if adds or (any("-" in piece for piece in pieces) and _RANGE.fullmatch(text)):
        return Literal(text)
    return text


def as_plain(value: JSON) -> JSON:
    """Return a value of data where texts are wildcards or regular expressions: as a literal, if it is a text.

    >>> type(as_plain("dev@example.com")).__name__, as_plain(["*"])
    ('Literal', ['*'])
    """
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_plain(item) for item in value]
    return Literal(value) if isinstance(value, str) else value


def as_plain_within(text: str, pieces: Sequence[str]) -> str:
    """Return such a text of the policy that holds pieces of data: a literal unless these are words, names or addresses.

    >>> type(as_plain_within("https://x/team/*", ["team"])).__name__
    'str'
    >>> type(as_plain_within("https://x/.*/", [".*"])).__name__
    'Literal'
    """
    return text if all(map(_PLAIN.fullmatch, pieces)) else Literal(text)
