"""Anchor keys: the parenthesised map keys of patterns and overlays, and how they are spelled.

    (k)   condition          the rule applies only where k matches
    =(k)  equality           k, when present, must match
    ^(k)  existence          some element of list k must match
    X(k)  negation           k must be absent
    <(k)  global condition   the rule applies only where k, when present, matches
    +(k)  add if absent      mutate only

This module knows the grammar of keys. It must not know what an anchor does to a match (see `checks`, `mutate`).
"""

from __future__ import annotations

from enum import StrEnum

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSON
from pyverno.value import dataclass

__all__ = [
    "CONDITIONS",
    "GO_SPACE",
    "PATCHING",
    "Anchor",
    "Literal",
    "Modifier",
    "has_anchor_keys",
    "parse_anchor",
    "refuse_directive",
    "refuse_directives",
]

GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""The characters that Go's strings.TrimSpace removes; Python's own strip() removes four control characters more."""


class Modifier(StrEnum):
    """The character before the parenthesis; its text is that character."""

    CONDITION = ""
    GLOBAL = "<"
    NEGATION = "X"
    ADD_IF_ABSENT = "+"
    EQUALITY = "="
    EXISTENCE = "^"


CONDITIONS = frozenset({Modifier.CONDITION, Modifier.GLOBAL})
"""The two anchors that decide whether a rule applies at all."""

PATCHING = CONDITIONS | {Modifier.ADD_IF_ABSENT}
"""The anchors that count in patches."""


class Literal(str):
    """A text that a value of the object must equal; as a key, the name of a field."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """One parsed anchor key.

    >>> str(Anchor(Modifier.EQUALITY, "hostPID"))
    '=(hostPID)'
    """

    modifier: Modifier
    key: str

    def __str__(self) -> str:
        return f"{self.modifier.value}({self.key})"


def parse_anchor(text: str) -> Anchor | None:
    """Parse a map key; None when it is a plain key.

    Blanks around the key are ignored; the text between the parentheses is taken as it is, but must not be empty
    and must not contain a line break.

    >>> parse_anchor("X(hostPath)")
    Anchor(modifier=<Modifier.NEGATION: 'X'>, key='hostPath')
    >>> parse_anchor("hostPath") is None
    True
    """
    # Kyverno: pkg/engine/anchor, ^(?P<modifier>[+<=X^])?\((?P<key>.+)\)$ on the trimmed text
    if not text or ")" not in text or isinstance(text, Literal):
        return None
    trimmed = text.strip(GO_SPACE)
    if trimmed[:1] == "(":
        modifier, start = Modifier.CONDITION, 1
    elif trimmed[:1] in _PREFIXES and trimmed[1:2] == "(":
        modifier, start = _PREFIXES[trimmed[0]], 2
    else:
        return None
    key = trimmed[start:-1]
    if trimmed[-1] != ")" or not key or "\n" in key:
        return None
    return Anchor(modifier, key)


_PREFIXES = {modifier.value: modifier for modifier in Modifier if modifier.value}


def refuse_directives(value: JSON) -> JSON:
    """Return a value of data that becomes part of a patch; raises EvaluationError when a patch would read its keys.

    >>> refuse_directives({"a": ["(b)"]})
    {'a': ['(b)']}
    """
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in node:
                refuse_directive(key)
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return value


def refuse_directive(key: JSON, own: str = "") -> JSON:
    """Return a key of data; raises EvaluationError for one that a patch reads as an anchor or a directive.

    `own` is what the policy wrote of the key: an anchor in it is the policy's.

    >>> refuse_directive("+(team)", "+(x)")
    '+(team)'
    """
    if isinstance(key, str) and (directive := _directive(key)) and directive != _directive(own):
        raise EvaluationError("a key of the request would be read as an anchor or a directive of the patch")
    return key


def _directive(key: str) -> str:
    if key == "$patch":
        return key
    anchor = parse_anchor(key)
    return f"{anchor.modifier.value}()" if anchor is not None and anchor.modifier in PATCHING else ""


def has_anchor_keys(pattern: JSON, modifiers: frozenset[Modifier]) -> bool:
    """Return whether a map anywhere in the pattern has a key with one of these anchors.

    >>> has_anchor_keys({"a": [{"=(b)": 1}]}, frozenset({Modifier.EQUALITY}))
    True
    """
    pending = [pattern]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            for key in node:
                anchor = parse_anchor(key)
                if anchor is not None and anchor.modifier in modifiers:
                    return True
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return False
