"""Wildcards `*` and `?` of a constant text as CEL: prefix, suffix, part, or a regular expression."""

from __future__ import annotations

import re
from typing import Final

from pyverno.compiler.migration.text import TRUE, Cel, CelType, all_of, compare, literal
from pyverno.kube.wildcard import has_wildcard

__all__ = ["regex_of", "text_matches"]

_SPECIAL: Final = re.compile(r"[.+*?()|\[\]{}^$\\]")


def text_matches(value: Cel, pattern: str) -> Cel:
    """Return whether a text matches a pattern with wildcards.

    >>> c = Cel("c.image")
    >>> for each in ("nginx", "*", "?*", "ghcr.io/*", "*:latest", "*tiller*", "a*.ex?mple.com"):
    ...     print(text_matches(c, each))
    c.image == 'nginx'
    true
    c.image != ''
    c.image.startsWith('ghcr.io/')
    c.image.endsWith(':latest')
    c.image.contains('tiller')
    c.image.matches('(?s)^a.*\\\\.ex.mple\\\\.com$')
    """
    if not has_wildcard(pattern):
        return compare(value, "==", literal(pattern))
    if not pattern.strip("*"):
        return TRUE
    if pattern in ("?*", "*?"):
        return compare(value, "!=", literal(""))
    inner = pattern.strip("*")
    if not has_wildcard(inner):
        starts, ends = pattern.startswith("*"), pattern.endswith("*")
        word = "contains" if starts and ends else "endsWith" if starts else "startsWith"
        return value.method(word, literal(inner), returns=CelType.BOOL)
    head, _, tail = pattern.partition("*")
    if head and tail and not has_wildcard(head) and not has_wildcard(tail):
        return all_of(
            [
                value.method("startsWith", literal(head), returns=CelType.BOOL),
                value.method("endsWith", literal(tail), returns=CelType.BOOL),
                compare(Cel(f"size({value.text})", CelType.INT), ">=", literal(len(head) + len(tail))),
            ]
        )
    return value.method("matches", literal(regex_of(pattern)), returns=CelType.BOOL)


def regex_of(pattern: str) -> str:
    r"""Return the regular expression (RE2) of a pattern with wildcards.

    >>> print(regex_of("a.b/*?"))
    (?s)^a\.b/.*.$
    """
    body = "".join(
        ".*" if each == "*" else "." if each == "?" else _SPECIAL.sub(lambda found: "\\" + found[0], each)
        for each in pattern
    )
    return f"(?s)^{body}$"
