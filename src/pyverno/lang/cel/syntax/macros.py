"""Macros: calls that stand for a loop, a binding or a presence test.

A macro is a function from the arguments as parsed to a node, or None when the call is an ordinary one after all. The
tables are keyed by name, number of arguments and whether there is a receiver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pyverno.lang.cel.syntax import ast

__all__ = [
    "BINDINGS_MACROS",
    "OPTIONAL_MACROS",
    "OR_VALUE_MACROS",
    "SORT_BY_MACROS",
    "STANDARD_MACROS",
    "TWO_VARIABLE_MACROS",
    "Macro",
    "MacroError",
    "MacroTable",
]

NewId: TypeAlias = Callable[[], int]
Macro: TypeAlias = Callable[[NewId, int, ast.Node | None, tuple[ast.Node, ...]], ast.Node | None]
MacroTable: TypeAlias = Mapping[tuple[str, int, bool], Macro]
_ACCUMULATORS: Final = frozenset({"__result__", "@result"})


class MacroError(ValueError):
    """A macro whose arguments do not fit; `offset` is the argument at fault."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def _receiver(target: ast.Node | None) -> ast.Node:
    """Return the receiver of a member macro, which the parser only looks up when there is one."""
    if target is None:
        raise MacroError(0, "the macro needs a receiver")
    return target


def _start(node: ast.Node) -> int:
    return node.offset


def _variable(node: ast.Node, complaint: str) -> str:
    if not isinstance(node, ast.Ident) or node.name.startswith("."):
        raise MacroError(_start(node), complaint)
    if node.name in _ACCUMULATORS:
        raise MacroError(_start(node), "iteration variable overwrites accumulator variable")
    return node.name


def _has(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
    operand = args[0]
    if not isinstance(operand, ast.Select) or operand.optional:
        raise MacroError(_start(operand), "invalid argument to has() macro")
    return ast.Has(new_id(), offset, operand.operand, operand.field)


def _quantifier(kind: str, variables: int = 1) -> Macro:
    def expand(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
        names = _variables(args[:variables])
        return ast.Comprehension(new_id(), offset, kind, _receiver(target), names, args[variables], None)

    return expand


def _transform(kind: str, variables: int = 1) -> Macro:
    complaint = "argument is not an identifier" if kind in ("map", "filter") else "argument must be a simple name"

    def expand(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
        names = _variables(args[:variables], complaint)
        rest = args[variables:]
        if kind == "filter":
            return ast.Comprehension(new_id(), offset, kind, _receiver(target), names, rest[0], None)
        condition = rest[0] if len(rest) == 2 else None
        return ast.Comprehension(new_id(), offset, kind, _receiver(target), names, condition, rest[-1])

    return expand


def _variables(args: tuple[ast.Node, ...], complaint: str = "argument must be a simple name") -> tuple[str, ...]:
    names = tuple(_variable(arg, complaint) for arg in args)
    if len(set(names)) < len(names):
        raise MacroError(_start(args[1]), f"duplicate variable name: {names[0]}")
    return names


def _is_namespace(target: ast.Node | None, name: str) -> bool:
    return isinstance(target, ast.Ident) and target.name == name


def _bind(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node | None:
    if not _is_namespace(target, "cel"):
        return None
    name = args[0]
    if not isinstance(name, ast.Ident):
        raise MacroError(_start(name), "cel.bind() variable names must be simple identifiers")
    return ast.Bind(new_id(), offset, name.name, args[1], args[2])


def _optional_map(name: str, *, flat: bool) -> Macro:
    def expand(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
        variable = args[0]
        if not isinstance(variable, ast.Ident):
            raise MacroError(_start(variable), f"{name}() variable name must be a simple identifier")
        return ast.OptionalMap(new_id(), offset, _receiver(target), variable.name, args[1], flat)

    return expand


def _sort_by(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node | None:
    """Rewrite `list.sortBy(v, key)` to a sort of the list by the list of its keys."""
    target = _receiver(target)
    if not isinstance(target, (ast.Select, ast.ListLiteral, ast.Comprehension, ast.Ident, ast.Call)):
        raise MacroError(
            _start(target),
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    name = _variable(args[0], "sortBy variable name must be a simple identifier")
    keys = ast.Comprehension(new_id(), offset, "map", target, (name,), None, args[1])
    return ast.Call(new_id(), offset, "@sortByAssociatedKeys", target, (keys,))


def _or_value(new_id: NewId, offset: int, target: ast.Node | None, args: tuple[ast.Node, ...]) -> ast.Node:
    """Rewrite `x.orValue(d)` so that a plain value stays as it is."""
    # Kyverno: pkg/cel/compiler/env.go, orValueCompatMacro
    return ast.Call(new_id(), offset, "__orValueCompat__", None, (_receiver(target), args[0]))


STANDARD_MACROS: Final[MacroTable] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("existsOne"),
    ("existsOne", 2, True): _quantifier("existsOne"),
    ("map", 2, True): _transform("map"),
    ("map", 3, True): _transform("map"),
    ("filter", 2, True): _transform("filter"),
}
TWO_VARIABLE_MACROS: Final[MacroTable] = {
    ("all", 3, True): _quantifier("all", 2),
    ("exists", 3, True): _quantifier("exists", 2),
    ("existsOne", 3, True): _quantifier("existsOne", 2),
    ("exists_one", 3, True): _quantifier("existsOne", 2),
    ("transformList", 3, True): _transform("transformList", 2),
    ("transformList", 4, True): _transform("transformList", 2),
    ("transformMap", 3, True): _transform("transformMap", 2),
    ("transformMap", 4, True): _transform("transformMap", 2),
    ("transformMapEntry", 3, True): _transform("transformMapEntry", 2),
    ("transformMapEntry", 4, True): _transform("transformMapEntry", 2),
}
BINDINGS_MACROS: Final[MacroTable] = {("bind", 3, True): _bind}
OPTIONAL_MACROS: Final[MacroTable] = {
    ("optMap", 2, True): _optional_map("optMap", flat=False),
    ("optFlatMap", 2, True): _optional_map("optFlatMap", flat=True),
}
SORT_BY_MACROS: Final[MacroTable] = {("sortBy", 2, True): _sort_by}
OR_VALUE_MACROS: Final[MacroTable] = {("orValue", 1, True): _or_value}
