"""The fields of the object that an expression in CEL reads, judged by its text.

The reader follows chains of fields, lists and macros from `object` on, and gives up at everything else; parsing and
type checking cost a hundred times as much, and do not know the types of the policy's variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from pyverno.compiler.lints.fields import ANY, FieldTable, FieldType
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["Access", "FieldReader", "Types"]

Types: TypeAlias = frozenset[FieldType]

# a literal that is not closed ends with its line, or with the text: it is read once
_LITERAL = regex(
    r"r?\"\"\".*?(?:\"\"\"|\Z)|r?'''.*?(?:'''|\Z)"
    r"|r?'(?:\\.|[^'\\\n])*+'?|r?\"(?:\\.|[^\"\\\n])*+\"?|//[^\n]*",
    re.DOTALL,
)
_NAME = regex(r"(?<![\w.?@])[A-Za-z_]\w*")
_STEP = regex(r"\s*\.\s*\??\s*([A-Za-z_]\w*)(\s*\()?")
_MACRO = regex(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transformList|transformMap)\(\s*([A-Za-z_]\w*)\s*,")
_BRACKET = regex(r"[()\[\]{}]")
_SAME = frozenset({"filter", "orValue", "or"})
_UNKNOWN: Types = frozenset({ANY})


@dataclass(frozen=True, slots=True)
class Access:
    """A field that none of the types has, at an offset of the text."""

    offset: int
    name: str
    parents: Types


class FieldReader:
    """Follows chains such as `object.spec.containers` through the types of the matched kinds."""

    def __init__(self, table: FieldTable, objects: Types) -> None:
        self._table = table
        self._names: dict[str, Types] = {"object": objects, "oldObject": objects}
        self._variables: dict[str, Types] = {}
        self._lists: dict[int, Types] = {}
        self._ends: dict[int, int] = {}

    def declare(self, name: str, expression: str) -> None:
        """Take a variable of the policy; its type is known where the expression is one chain."""
        text = expression.strip()
        root = _NAME.match(text)
        types, end = _UNKNOWN, 0
        if root is not None and root[0] in self._names:
            self._ends = _closings(text)
            types, end = self._follow(text, root.end(), self._names[root[0]], [])
        self._variables[name] = types if end == len(text) else _UNKNOWN

    def unknown(self, text: str) -> Iterator[Access]:
        """Yield the fields that no type has."""
        text = _LITERAL.sub(lambda found: " " * len(found[0]), text)
        found: list[Access] = []
        names = dict(self._names)
        self._lists = {}
        self._ends = _closings(text)
        for token in sorted((*_NAME.finditer(text), *_MACRO.finditer(text)), key=lambda each: each.start()):
            if token.re.groups:
                # a variable of a macro: an element of the list, where that is known
                lists = self._lists.get(token.start(), _UNKNOWN)
                names[token[1]] = frozenset(self._table.element(each) for each in lists)
            elif token[0] == "variables":
                step = _STEP.match(text, token.end())
                if step is not None and not step[2]:
                    self._follow(text, step.end(1), self._variables.get(step[1], _UNKNOWN), found)
            elif token[0] in names:
                self._follow(text, token.end(), names[token[0]], found)
        yield from dict.fromkeys(found)

    def _follow(self, text: str, position: int, types: Types, found: list[Access]) -> tuple[Types, int]:
        """Follow a chain from a position; returns its type and end."""
        table = self._table
        while True:
            if text[position : position + 1] == "[":
                types = frozenset(table.element(each) for each in types)
                position = self._ends.get(position, len(text))
                continue
            step = _STEP.match(text, position)
            if step is None:
                return types, position
            if step[2]:
                self._lists[text.index(".", position)] = types
                if step[1] not in _SAME:
                    return _UNKNOWN, position
                position = self._ends.get(step.end() - 1, len(text))
                continue
            children = [table.child(each, step[1]) for each in types]
            known = frozenset(each for each in children if each is not None)
            if not known and "__" not in step[1]:  # an escaped name
                found.append(Access(step.start(1), step[1], types))
                return _UNKNOWN, position
            types, position = known or _UNKNOWN, step.end(1)


def _closings(text: str) -> dict[int, int]:
    """Return for each bracket that is closed the position after the one that closes it."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACKET.finditer(text):
        if found[0] in "([{":
            opened.append(found.start())
        elif opened:
            ends[opened.pop()] = found.end()
    return ends
