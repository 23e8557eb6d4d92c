"""The fields of the object that an expression names, where a change of the object could matter.

The answer is a guess that the engine checks: a superfluous field costs a review, and a missing one makes an explanation
less complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyverno.engine.explain.nodes import FieldPath
from pyverno.lang.cel import Program
from pyverno.lang.cel.syntax import ast

__all__ = ["Ranges", "cel_reads", "jmespath_reads"]

Ranges = Mapping[str, tuple[FieldPath, ...]]
"""The fields that a name stands for: a variable of the policy (`variables.x`), or what a loop runs through."""

_SAME: Final = frozenset({"orValue", "value", "hasValue", "optMap", "filter", "flatten", "_+_"})
"""Functions whose result is made of the fields of their operands."""
_MOST: Final = 64
_SEGMENT: Final = re.compile(r'\.?\s*(?:"((?:[^"\\]|\\.)+)"|([A-Za-z_][A-Za-z0-9_]*)|\[\s*(-?\d+)\s*\]|(\[[^\]]*\]))')


def cel_reads(program: Program, variables: Ranges) -> tuple[FieldPath, ...]:
    """Return the paths that an expression names, the longest ones only; `*` stands for every item of a list."""
    ranges = dict(variables)
    found: dict[FieldPath, None] = {}
    for node in ast.walk(program.checked.root):  # outer loops come first
        if isinstance(node, ast.Comprehension) and node.variables:
            paths = _paths(node.range, ranges)
            ranges[node.variables[-1]] = tuple((*path, "*") for path in paths)
        elif isinstance(node, (ast.Bind, ast.OptionalMap)):
            ranges[node.name] = _paths(node.value if isinstance(node, ast.Bind) else node.target, ranges)
        found |= dict.fromkeys(path for path in _paths(node, ranges) if path)
    return _longest(tuple(found))


def _paths(node: ast.Node, ranges: Ranges) -> tuple[FieldPath, ...]:
    match node:
        case ast.Ident():
            return ((),) if node.name == "object" else ranges.get(node.name, ())
        case ast.Select() | ast.Has():
            if isinstance(node.operand, ast.Ident) and node.operand.name == "variables":
                return ranges.get(f"variables.{node.field}", ())
            return tuple((*path, node.field) for path in _paths(node.operand, ranges))
        case ast.Index(index=ast.Literal(value=str() | int() as key)) if not isinstance(key, bool):
            return tuple((*path, key) for path in _paths(node.operand, ranges))
        case ast.Index():
            return _paths(node.operand, ranges)
        case ast.Ternary():
            return (*_paths(node.truthy, ranges), *_paths(node.falsy, ranges))[:_MOST]
        case ast.Comprehension() if node.kind == "filter":
            return _paths(node.range, ranges)
        case ast.Comprehension() if node.kind == "map" and node.body is not None:
            inner = {**ranges, node.variables[-1]: tuple((*path, "*") for path in _paths(node.range, ranges))}
            return _paths(node.body, inner)
        case ast.Call() if node.function in _SAME:
            operands = node.args if node.target is None else (node.target, *node.args)
            return tuple(path for operand in operands for path in _paths(operand, ranges))[:_MOST]
    return ()


def _longest(paths: Sequence[FieldPath]) -> tuple[FieldPath, ...]:
    kept = [path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)]
    return tuple(kept[:_MOST])


def jmespath_reads(text: str, names: Mapping[str, FieldPath]) -> Iterator[FieldPath]:
    """Yield the paths that a JMESPath expression names, in its variables (`request.object`, `element`).

    `names` are the variables that stand for fields of the object, with those fields.

    >>> [*jmespath_reads("request.object.spec.containers[].image", {"request.object": ()})]
    [('spec', 'containers', '*', 'image')]
    """
    for name, start in names.items():
        for found in re.finditer(rf"(?<![\w.]){re.escape(name)}(?![\w])", text):
            yield (*start, *_segments(text, found.end()))


def _segments(text: str, position: int) -> Iterator[str | int]:
    while found := _SEGMENT.match(text, position):
        if found.start() == position and text[position] not in '.["':
            return
        quoted, name, index, other = found.groups()
        if other is not None:
            yield "*"
        elif index is not None:
            yield int(index)
        elif text.startswith("(", found.end()):
            return  # a function
        else:
            yield quoted or name
        position = found.end()
