"""Generated source for the most common expressions of policies: exact values without budgets or placeholders.

There is source for chains of fields, `chain || literal`, lists of fields, flattened lists of them, and whether one of
these contains a text. It gives the value that the expression gives, or raises; it must never give another value. Used
by generated tiers only, whose every doubt falls back to the exact closures.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyverno.kube.json import JSON
from pyverno.lang.codegen import Source
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.expression import Expression

__all__ = ["NoFastFormError", "write_expression"]

_HOLE = "\ue000"
_LONGEST = 1000


class NoFastFormError(Exception):
    """The expression has a form that there is no source for."""


def write_expression(source: Source, indent: int, expression: Expression, roots: Mapping[tuple[str, ...], int]) -> int:
    """Write the lines that compute an expression; return the variable that then holds its value.

    `roots` maps the chains of fields that the function is given (`request.object`) to their variables. A
    missing key raises KeyError in the function. Raises NoFastFormError when the expression has another form.

    >>> from pyverno.lang.jmespath import compile_expression
    >>> source = Source(arguments=1)
    >>> number = write_expression(source, 0, compile_expression("a.b || `[]`"), {("a",): 0})
    >>> source.line(0, "return v{}", number)
    >>> source.build()({})
    []
    """
    return _Writer(source, roots).value(expression.ast, indent, swallows=False)


def _chain(node: Node) -> tuple[str, ...] | None:
    names: list[str] = []
    while node.type is NodeType.SUBEXPRESSION:
        node, field = node.children
        if field.type is not NodeType.FIELD or not isinstance(field.value, str):
            return None
        names.append(field.value)
    if node.type is not NodeType.FIELD or not isinstance(node.value, str):
        return None
    names.append(node.value)
    return None if any(_HOLE in name for name in names) else tuple(reversed(names))


class _Writer:
    """Writes the nodes of an expression; a node that `swallows` takes a missing key for null, others raise."""

    def __init__(self, source: Source, roots: Mapping[tuple[str, ...], int]) -> None:
        self.source = source
        self.roots = roots

    def value(self, node: Node, indent: int, swallows: bool) -> int:
        names = _chain(node)
        if names is not None:
            return self.fields(names, indent, swallows)
        match node.type:
            case NodeType.OR:
                return self.either(node, indent)
            case NodeType.PROJECTION:
                return self.projection(node, indent)
            case NodeType.SUBEXPRESSION if node.children[1].type is NodeType.MULTI_SELECT_LIST:
                return self.selected(node, indent, swallows)
            case NodeType.FUNCTION if node.value == "contains":
                return self.contained(node, indent)
            case _:
                raise NoFastFormError

    def fields(self, names: tuple[str, ...], indent: int, swallows: bool) -> int:
        """Walk down a chain; a field of null, text, a number or a list is null."""
        root = next((root for root in self.roots if names[: len(root)] == root), None)
        if root is None:
            raise NoFastFormError
        variable = self.roots[root]
        get = "v{} = v{}.get(c{}) if type(v{}) is dict else None"
        if not swallows:
            get = "v{} = v{}[c{}] if type(v{}) is dict else None"
        for name in names[len(root) :]:
            child = self.source.variable()
            self.source.line(indent, get, child, variable, self.source.constant(name), variable)
            variable = child
        return variable

    def either(self, node: Node, indent: int) -> int:
        left, right = node.children
        if right.type is not NodeType.LITERAL:
            raise NoFastFormError
        found = self.value(left, indent, swallows=True)
        result, default = self.source.variable(), self.source.constant(right.value)
        # false values of JMESPath: null, false, and empty text, lists and maps; zero is true
        is_true = "v{} or type(v{}) is int or type(v{}) is float"
        self.source.line(indent, "v{} = v{} if " + is_true + " else c{}", result, found, found, found, found, default)
        return result

    def contained(self, node: Node, indent: int) -> int:
        """Whether a list contains a text; anything but a list is left to the exact expression."""
        whole, part = node.children
        if part.type is not NodeType.LITERAL or not isinstance(part.value, str):
            raise NoFastFormError
        found = self.value(whole, indent, swallows=False)
        result = self.source.variable()
        line, longest = self.source.line, self.source.constant(_LONGEST)
        line(indent, "if type(v{}) is not list or len(v{}) > c{}:", found, found, longest)
        line(indent + 1, "raise ValueError")
        line(indent, "v{} = c{} in v{}", result, self.source.constant(part.value), found)
        return result

    def selected(self, node: Node, indent: int, swallows: bool) -> int:
        names, children = _chain(node.children[0]), node.children[1].children
        fields = [child.value for child in children if child.type is NodeType.FIELD]
        if names is None or len(fields) != len(children) or any(_HOLE in field for field in fields):
            raise NoFastFormError
        parent = self.fields(names, indent, swallows)
        result = self.source.variable()
        # for anything but null and a map this raises AttributeError
        gets = ", ".join("v{}.get(c{})" for _ in fields)
        numbers = [number for field in fields for number in (parent, self.source.constant(field))]
        self.source.line(indent, "v{} = [" + gets + "] if v{} is not None else None", result, *numbers, parent)
        return result

    def projection(self, node: Node, indent: int) -> int:
        """Flattened lists with nothing, a field or `keys(@)` to the right; nulls are dropped."""
        flatten, right = node.children
        if flatten.type is not NodeType.FLATTEN:
            raise NoFastFormError
        found = self.value(flatten.children[0], indent, swallows=True)
        result, item = self.source.variable(), self.source.variable()
        line = self.source.line
        line(indent, "v{} = None", result)
        line(indent, "if v{} is not None:", found)
        line(indent + 1, "v{} = []", result)
        # what is no list, or long enough to meet a budget, is left to the exact expression
        line(indent + 1, "if type(v{}) is not list or len(v{}) > c{}:", found, found, self.source.constant(_LONGEST))
        line(indent + 2, "raise ValueError")
        line(indent + 1, "for v{} in v{}:", item, found)
        line(indent + 2, "if type(v{}) is list:", item)
        inner = self.source.variable()
        line(indent + 3, "for v{} in v{}:", inner, item)
        self.each(right, inner, result, indent + 4)
        line(indent + 3, "if len(v{}) > c{}:", result, self.source.constant(_LONGEST))
        line(indent + 4, "raise ValueError")
        line(indent + 2, "else:")
        self.each(right, item, result, indent + 3)
        return result

    def each(self, right: Node, item: int, result: int, indent: int) -> None:
        """Write what becomes of one item of a projection, and append it unless it is null."""
        match right.type:
            case NodeType.IDENTITY:
                value = item
            case NodeType.FIELD if _HOLE not in right.value:
                value = self.source.variable()
                name = self.source.constant(right.value)
                self.source.line(indent, "v{} = v{}.get(c{}) if type(v{}) is dict else None", value, item, name, item)
            case NodeType.FUNCTION if right.value == "keys" and _is_current(right.children):
                value = self.source.variable()
                self.source.line(indent, "v{} = c{}(v{})", value, self.source.constant(_keys), item)
            case _:
                raise NoFastFormError
        self.source.line(indent, "if v{} is not None:", value)
        self.source.line(indent + 1, "v{}.append(v{})", result, value)


def _is_current(arguments: tuple[Node, ...] | list[Node]) -> bool:
    return [argument.type for argument in arguments] == [NodeType.CURRENT]


def _keys(item: JSON) -> JSON:
    if type(item) is not dict:
        raise TypeError("only maps have keys")
    return sorted(item)
