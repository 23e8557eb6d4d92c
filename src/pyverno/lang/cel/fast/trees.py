"""Facts about an expression that the generator of pass-checks needs: constants, loops, tests, and equal meaning.

All functions read checked trees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final

from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.checking.unification import is_optional
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.types import Type
from pyverno.lang.cel.values import MISSING, Value
from pyverno.value import fields

__all__ = [
    "holds_optionals",
    "is_test",
    "is_variables",
    "literal",
    "literal_cost",
    "looping",
    "operands_of",
    "shape",
    "uses_loops",
]

VARIABLES: Final = "variables"
TESTS: Final = frozenset(
    {
        "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in",
        "startsWith", "endsWith", "contains", "matches", "hasValue",
    }
)  # fmt: skip


def is_test(node: ast.Node, checked: Checked) -> bool:
    """Return whether a node is an operation whose result is a bool, whatever the data."""
    if isinstance(node, ast.Call):
        resolution = checked.resolutions.get(node.id)
        return resolution is not None and resolution.function in TESTS
    if isinstance(node, ast.Comprehension):
        return node.kind in ("all", "exists", "existsOne")
    return isinstance(node, (ast.Logical, ast.Has))


def operands_of(node: ast.Call, *, drops_target: bool) -> tuple[ast.Node, ...]:
    """Return the operands of a call, its receiver first."""
    return node.args if node.target is None or drops_target else (node.target, *node.args)


def holds_optionals(type_: Type) -> bool:
    """Return whether values of a type are optional or hold optional values."""
    return is_optional(type_) or any(map(holds_optionals, type_.params))


def literal(node: ast.Node) -> Value:
    """Return the value of a node that is written out: a scalar, or a list or map of those; MISSING for all others."""
    if isinstance(node, ast.Literal):
        return node.value
    if isinstance(node, ast.ListLiteral) and not node.optionals:
        items = [literal(element) for element in node.elements]
        return MISSING if any(item is MISSING for item in items) else items
    if isinstance(node, ast.MapLiteral):
        pairs = {}
        for entry in node.entries:
            key, value = literal(entry.key), literal(entry.value)
            if entry.optional or type(key) is not str or key in pairs or value is MISSING:
                return MISSING
            pairs[key] = value
        return pairs
    return MISSING


def literal_cost(node: ast.Node) -> int:
    """Return the most that the literals of a node cost."""
    return sum(30 for each in ast.walk(node) if isinstance(each, (ast.ListLiteral, ast.MapLiteral)))


def is_variables(checked: Checked, node: ast.Node) -> bool:
    """Return whether a node is the name `variables`."""
    reference = checked.references.get(node.id)
    return reference is not None and not reference.local and reference.name == VARIABLES


def looping(definitions: Mapping[str, Checked]) -> frozenset[str]:
    """Return the names of the variables that have a loop, or read one that has; each sees those before it."""
    found: set[str] = set()
    for name, checked in definitions.items():
        if uses_loops(checked, found):
            found.add(name)
    return frozenset(found)


def uses_loops(checked: Checked, variables: Collection[str]) -> bool:
    """Return whether an expression has a loop, or reads one of these variables."""
    return any(
        isinstance(node, ast.Comprehension)
        or (isinstance(node, ast.Select) and node.field in variables and is_variables(checked, node.operand))
        for node in ast.walk(checked.root)
    )


def shape(checked: Checked, shape_of: Callable[[str], Hashable]) -> Hashable:
    """Return a key that is equal for expressions of one meaning: the tree, and what its names and calls stand for.

    `shape_of` gives small keys of the variables that it reads.
    """

    def of(node: ast.Node) -> Hashable:
        reference, resolution = checked.references.get(node.id), checked.resolutions.get(node.id)
        parts: list[Any] = [type(node)]
        if reference is not None:
            parts += [reference.name, reference.local, id(reference.constant)]
        if resolution is not None:
            parts += [resolution.function, *map(id, resolution.overloads)]
        if isinstance(node, ast.Select) and is_variables(checked, node.operand):
            return ("variable", node.optional, shape_of(node.field))
        for part in fields(node):
            if part.name not in ("id", "offset"):
                parts.append(within(getattr(node, part.name)))
        return tuple(parts)

    def within(part: Value) -> Hashable:
        if isinstance(part, ast.Node):
            return of(part)
        if isinstance(part, tuple):
            return tuple(map(within, part))
        return (type(part), part)

    return of(checked.root)
