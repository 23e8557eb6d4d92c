"""Derive the checked tree of an expression from that of the same expression on a shorter path of the object.

`object.spec.template.spec.x` is `object.spec.x` with `.spec.template` put in behind `object`. As the object is of no
known type, the tree with its types is the same but for the selections put in; to move it costs a tenth of parsing and
checking the text. This module must give up wherever the texts could differ in more than that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pyverno.lang.cel.checking.checked import Checked
from pyverno.lang.cel.syntax import ast
from pyverno.lang.cel.types import DYN, Type

__all__ = ["rebase"]


def rebase(checked: Checked, places: Sequence[int], steps: Sequence[str]) -> Checked | None:
    """Return the checked tree after `.step.step` was put into the text at these places, in ascending order.

    Each place must be the end of a name of no known type whose field is selected there; otherwise the result is None.
    The nodes are made on first use: many copies never meet a request.

    >>> from pyverno.lang.cel import STANDARD, types
    >>> environment = STANDARD.with_variables({"object": types.DYN})
    >>> deeper = rebase(environment.check("object.a == 1"), [6], ("b",))
    >>> deeper.root.args[0].operand.field, deeper.root.offset
    ('b', 11)
    """
    if not checked.openings.issuperset(places):
        return None
    return checked.later(partial(_move, checked, places, steps))


def _move(checked: Checked, places: Sequence[int], steps: Sequence[str]) -> tuple[ast.Node, dict[int, Type]]:
    mover = _Mover(checked, places, steps)
    root = mover.moved(checked.root)
    return root, {**checked.types, **dict.fromkeys(mover.fresh, DYN)}


class _Mover:
    def __init__(self, checked: Checked, places: Sequence[int], steps: Sequence[str]) -> None:
        self._checked = checked
        self._places = places
        self._steps = steps
        self._added = sum(len(step) + 1 for step in steps)
        self._last_id = max(checked.types, default=0)
        self._openings = frozenset(places)
        self.fresh: list[int] = []

    def offset(self, offset: int) -> int:
        """Return where an offset of the old text is in the new one."""
        return offset + self._added * bisect_right(self._places, offset)

    def moved(self, node: ast.Node) -> ast.Node:
        """Return a node of the new tree; ids stay."""
        return _MOVERS[type(node)](self, node)

    def all(self, nodes: Sequence[Any]) -> tuple[Any, ...]:
        """Return nodes of the new tree."""
        return tuple([self.moved(node) for node in nodes])

    def operand(self, node: ast.Node, *, optional: bool) -> ast.Node:
        """Return the operand of a selection, which is looked for deeper when it is at one of the places."""
        found = self.moved(node)
        if not isinstance(node, ast.Ident) or optional:
            return found
        # a macro may have put one name into the tree twice
        if node.offset + len(node.name) not in self._openings:
            return found
        dot = self.offset(node.offset) + len(node.name)
        for step in self._steps:
            self._last_id += 1
            self.fresh.append(self._last_id)
            found = ast.Select(self._last_id, dot, found, step)
            dot += len(step) + 1
        return found


def _select(mover: _Mover, node: ast.Select) -> ast.Node:
    operand = mover.operand(node.operand, optional=node.optional)
    return ast.Select(node.id, mover.offset(node.offset), operand, node.field, node.optional)


def _has(mover: _Mover, node: ast.Has) -> ast.Node:
    return ast.Has(node.id, mover.offset(node.offset), mover.operand(node.operand, optional=False), node.field)


def _call(mover: _Mover, node: ast.Call) -> ast.Node:
    target = None if node.target is None else mover.moved(node.target)
    return ast.Call(node.id, mover.offset(node.offset), node.function, target, mover.all(node.args))


def _comprehension(mover: _Mover, node: ast.Comprehension) -> ast.Node:
    condition = None if node.condition is None else mover.moved(node.condition)
    body = None if node.body is None else mover.moved(node.body)
    range_ = mover.moved(node.range)
    return ast.Comprehension(node.id, mover.offset(node.offset), node.kind, range_, node.variables, condition, body)


def _of_parts(kind: type[ast.Node], *names: str) -> Callable[[_Mover, Any], ast.Node]:
    """Return the mover of a class: these fields are nodes or tuples of nodes, the others are kept."""

    def move(mover: _Mover, node: Any) -> ast.Node:
        values = []
        for name in _FIELDS[kind]:
            value = getattr(node, name)
            if name in names:
                value = mover.all(value) if isinstance(value, tuple) else mover.moved(value)
            values.append(value)
        return kind(node.id, mover.offset(node.offset), *values)

    return move


_FIELDS: Final[Mapping[type[ast.Node], tuple[str, ...]]] = {
    ast.Literal: ("value",),
    ast.Ident: ("name",),
    ast.Index: ("operand", "index", "optional"),
    ast.Logical: ("operator", "terms"),
    ast.Ternary: ("condition", "truthy", "falsy"),
    ast.ListLiteral: ("elements", "optionals"),
    ast.Entry: ("key", "value", "optional"),
    ast.MapLiteral: ("entries",),
    ast.Field: ("name", "value", "optional"),
    ast.StructLiteral: ("type_name", "fields"),
    ast.Bind: ("name", "value", "body"),
    ast.OptionalMap: ("target", "name", "body", "flat"),
}
_MOVERS: Final[Mapping[type[ast.Node], Callable[[_Mover, Any], ast.Node]]] = {
    ast.Literal: _of_parts(ast.Literal),
    ast.Ident: _of_parts(ast.Ident),
    ast.Select: _select,
    ast.Has: _has,
    ast.Index: _of_parts(ast.Index, "operand", "index"),
    ast.Call: _call,
    ast.Logical: _of_parts(ast.Logical, "terms"),
    ast.Ternary: _of_parts(ast.Ternary, "condition", "truthy", "falsy"),
    ast.ListLiteral: _of_parts(ast.ListLiteral, "elements"),
    ast.Entry: _of_parts(ast.Entry, "key", "value"),
    ast.MapLiteral: _of_parts(ast.MapLiteral, "entries"),
    ast.Field: _of_parts(ast.Field, "value"),
    ast.StructLiteral: _of_parts(ast.StructLiteral, "fields"),
    ast.Comprehension: _comprehension,
    ast.Bind: _of_parts(ast.Bind, "value", "body"),
    ast.OptionalMap: _of_parts(ast.OptionalMap, "target", "body"),
}
