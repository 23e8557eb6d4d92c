"""Short cuts for the expressions that policies use most: exact values without budgets, holes or lazy scopes.

A short cut exists for chains of fields, `chain || literal`, lists of fields and flattened lists of them. It gives the
value that the expression gives, or raises `NoShortcutError`; it must never give another value. Used by pass-checks only,
whose every doubt falls back to the exact closures.
"""

from __future__ import annotations

from collections.abc import Callable

from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.expression import Expression

__all__ = ["NoShortcutError", "Shortcut", "shortcut"]

Shortcut = Callable[[JSON], JSON]


class NoShortcutError(Exception):
    """The value can not be told this way; the exact closures must be asked."""


class _Missing:
    """A key that a map lacks: swallowed by `||`, an error anywhere else."""


_MISSING = _Missing()


def shortcut(expression: Expression, is_known: Callable[[tuple[str, ...]], bool]) -> Shortcut | None:
    """Return the short cut of an expression, or None when it has a form that has none.

    `is_known` tells of a chain of field names whether the data handed to the short cut can answer it.

    >>> from pyverno.lang.jmespath import compile_expression
    >>> shortcut(compile_expression("a.b || `[]`"), lambda names: True)({"a": {}})
    []
    """
    step = _Compiler(is_known).compile(expression.ast)
    if step is None:
        return None

    def value(data: JSON) -> JSON:
        found = step(data)
        if found is _MISSING:
            raise NoShortcutError
        return found

    return value


def _chain(node: Node) -> tuple[str, ...] | None:
    names: list[str] = []
    while node.type is NodeType.SUBEXPRESSION:
        node, field = node.children
        if field.type is not NodeType.FIELD or not isinstance(field.value, str):
            return None
        names.append(field.value)
    if node.type is not NodeType.FIELD or not isinstance(node.value, str) or "\ue000" in node.value:
        return None
    names.append(node.value)
    return None if any("\ue000" in name for name in names) else tuple(reversed(names))


def _fields(names: tuple[str, ...]) -> Shortcut:
    def value(data: JSON) -> JSON:
        for name in names:
            if type(data) is not dict:
                # a field of null, text, a number or a list is null
                return None
            if name not in data:
                return _MISSING
            data = data[name]
        return data

    return value


class _Compiler:
    """Turns the nodes of an expression into short cuts."""

    __slots__ = ("is_known",)

    def __init__(self, is_known: Callable[[tuple[str, ...]], bool]) -> None:
        self.is_known = is_known

    def compile(self, node: Node) -> Shortcut | None:
        names = _chain(node)
        if names is not None:
            return _fields(names) if self.is_known(names) else None
        match node.type:
            case NodeType.OR:
                return self.either(node)
            case NodeType.PROJECTION:
                return self.projection(node)
            case NodeType.SUBEXPRESSION if node.children[1].type is NodeType.MULTI_SELECT_LIST:
                return self.selected(node)
            case _:
                return None

    def either(self, node: Node) -> Shortcut | None:
        left, right = node.children
        step = self.compile(left)
        if step is None or right.type is not NodeType.LITERAL:
            return None
        default = right.value

        def value(data: JSON) -> JSON:
            found = step(data)
            # false values of JMESPath: null, false, and empty text, lists and maps; zero is true
            if found is _MISSING or found is None or found is False or (not found and type(found) in (str, list, dict)):
                return default
            return found

        return value

    def selected(self, node: Node) -> Shortcut | None:
        names = _chain(node.children[0])
        fields = [child.value for child in node.children[1].children if child.type is NodeType.FIELD]
        if (
            names is None
            or not self.is_known(names)
            or len(fields) != len(node.children[1].children)
            or any("\ue000" in name for name in fields)
        ):
            return None
        parent = _fields(names)

        def value(data: JSON) -> JSON:
            found = parent(data)
            if found is None or found is _MISSING:
                return found
            if type(found) is not dict:
                raise NoShortcutError
            return [found.get(name) for name in fields]

        return value

    def projection(self, node: Node) -> Shortcut | None:
        """Flattened lists with nothing, a field or `keys(@)` to the right."""
        flatten, right = node.children
        if flatten.type is not NodeType.FLATTEN:
            return None
        source = self.compile(flatten.children[0])
        each = _each(right)
        if source is None or each is None:
            return None

        def value(data: JSON) -> JSON:
            found = source(data)
            if found is None or found is _MISSING:
                return None
            if type(found) is not list:
                raise NoShortcutError
            items: list[JSON] = []
            for item in found:
                if type(item) is list:
                    items.extend(item)
                elif item is not None:
                    items.append(item)
            return [result for item in items if item is not None and (result := each(item)) is not None]

        return value


def _each(node: Node) -> Shortcut | None:
    match node.type:
        case NodeType.IDENTITY:
            return lambda item: item
        case NodeType.FIELD:
            name = node.value
            return lambda item: item.get(name) if type(item) is dict else None
        case NodeType.FUNCTION if node.value == "keys" and [child.type for child in node.children] == [
            NodeType.CURRENT
        ]:
            return _keys
        case _:
            return None


def _keys(item: JSON) -> JSON:
    if type(item) is not dict:
        raise NoShortcutError
    return sorted(item)
