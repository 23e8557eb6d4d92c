"""Generated functions that name the path at which a resource violates a pattern.

Law: a path that is returned is the path of a FAIL of the exact match; None says nothing, then the exact tier must be
asked. They exist for patterns of plain keys, equality and negation anchors, lists of one map and scalars, which is what most
rules are made of: order of keys and paths are then known beforehand. This module must never answer for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from pyverno.kube.json import JSON, JSONObject
from pyverno.lang.codegen import MAX_INDENT, Source
from pyverno.lang.pattern.anchors import Modifier, parse_anchor
from pyverno.lang.pattern.checks import compile_scalar
from pyverno.lang.pattern.leaf import literal_texts
from pyverno.lang.pattern.metadata import find_tag

__all__ = ["FailPath", "compile_failpath"]

FailPath: TypeAlias = Callable[[JSON], "tuple[str | int, ...] | None"]

_DEEPEST = MAX_INDENT - 8


class _Unsuitable(Exception):  # noqa: N818 - a pattern, not an error
    """The pattern has a form that generated paths are not made for."""


class _Entry(NamedTuple):
    key: str
    pattern: JSON
    is_optional: bool = False
    is_forbidden: bool = False


class _Step(NamedTuple):
    """One step of a path: the number of a constant (a key), or of a variable (an index)."""

    number: int
    is_variable: bool


_Path: TypeAlias = tuple[_Step, ...]


def compile_failpath(pattern: JSON, *, float_numbers: bool = False) -> FailPath | None:
    """Generate the function of a pattern, or None when it has another form than these functions are made for.

    >>> compile_failpath({"spec": {"=(hostPID)": False}})({"spec": {"hostPID": True}})
    ('spec', 'hostPID')
    """
    writer = _Writer(float_numbers)
    try:
        writer.value(0, pattern, (), 0)
        writer.source.line(0, "return None")
        function: FailPath = writer.source.build()
    except (_Unsuitable, ValueError, RecursionError):
        return None
    return function


class _Writer:
    def __init__(self, float_numbers: bool) -> None:
        self.source = Source(arguments=1)
        self.floats = float_numbers

    def refuse(self, indent: int, path: _Path) -> None:
        """Write the return of a path."""
        template = "".join("v{}, " if step.is_variable else "c{}, " for step in path)
        self.source.line(indent, f"return ({template})", *(step.number for step in path))

    def value(self, variable: int, pattern: JSON, path: _Path, indent: int) -> None:
        if indent > _DEEPEST:
            raise _Unsuitable
        if isinstance(pattern, dict):
            self.source.line(indent, "if not type(v{}) is dict:", variable)
            self.refuse(indent + 1, path)
            for entry in _ordered(pattern):
                self.entry(variable, entry, path, indent)
        elif isinstance(pattern, list):
            self.list(variable, pattern, path, indent)
        else:
            self.scalar(variable, pattern, path, indent)

    def entry(self, variable: int, entry: _Entry, path: _Path, indent: int) -> None:
        key = self.source.constant(entry.key)
        here = (*path, _Step(key, is_variable=False))
        if entry.is_forbidden:
            self.source.line(indent, "if c{} in v{}:", key, variable)
            self.refuse(indent + 1, here)
            return
        child = self.source.variable()
        if entry.is_optional:
            self.source.line(indent, "if c{} in v{}:", key, variable)
            self.source.line(indent + 1, "v{} = v{}[c{}]", child, variable, key)
            indent += 1
        else:
            self.source.line(indent, "v{} = v{}[c{}] if c{} in v{} else None", child, variable, key, key, variable)
            if entry.pattern == "*":
                self.source.line(indent, "if v{} is None:", child)
                self.refuse(indent + 1, path)
                return
        self.value(child, entry.pattern, here, indent)

    def list(self, variable: int, pattern: list[JSON], path: _Path, indent: int) -> None:
        if not pattern or isinstance(pattern[0], list):
            raise _Unsuitable
        self.source.line(indent, "if not type(v{}) is list:", variable)
        self.refuse(indent + 1, path)
        if not isinstance(pattern[0], dict):
            self.scalar(variable, pattern[0], path, indent)
            return
        index, element = self.source.variable(), self.source.variable()
        self.source.line(indent, "v{} = 0", index)
        self.source.line(indent, "for v{} in v{}:", element, variable)
        self.value(element, pattern[0], (*path, _Step(index, is_variable=True)), indent + 1)
        self.source.line(indent + 1, "v{} = v{} + 1", index, index)

    def scalar(self, variable: int, pattern: JSON, path: _Path, indent: int) -> None:
        """Write a leaf: texts are compared first, whatever differs is left to the exact leaf."""
        leaf = self.source.constant(compile_scalar(pattern, float_numbers=self.floats))
        texts = literal_texts(pattern) if isinstance(pattern, str) else None
        if texts is not None and len(texts) == 1:
            text = self.source.constant(next(iter(texts)))
            self.source.line(indent, "if v{} != c{} and not c{}(v{}):", variable, text, leaf, variable)
        else:
            self.source.line(indent, "if not c{}(v{}):", leaf, variable)
        self.refuse(indent + 1, path)


def _ordered(pattern: JSONObject) -> Iterator[_Entry]:
    """Yield the entries of a map in the order of the exact tier: anchors, then keys with anchors below, then others."""
    if find_tag(pattern, "metadata") is not None:
        raise _Unsuitable
    anchors: list[_Entry] = []
    front: list[_Entry] = []
    back: list[_Entry] = []
    for text in sorted(pattern):
        anchor, child = parse_anchor(text), pattern[text]
        if anchor is None:
            (front if _has_anchors(child) else back).append(_Entry(text, child))
        elif anchor.modifier is Modifier.EQUALITY:
            anchors.append(_Entry(anchor.key, child, is_optional=True))
        elif anchor.modifier is Modifier.NEGATION:
            anchors.append(_Entry(anchor.key, None, is_forbidden=True))
        else:
            raise _Unsuitable
    yield from anchors
    yield from reversed(front)
    yield from back


def _has_anchors(pattern: JSON) -> bool:
    if isinstance(pattern, dict):
        return any(parse_anchor(key) is not None or _has_anchors(child) for key, child in pattern.items())
    return isinstance(pattern, list) and any(_has_anchors(item) for item in pattern)
