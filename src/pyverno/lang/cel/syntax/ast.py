"""The tree of a parsed expression.

Macros are nodes of their own (`Comprehension`, `Bind`, `OptionalMap`): they are typed, evaluated and charged exactly as
cel-go's expansions of them, without being expanded. Every node has an `id` (unique in its tree) and the `offset` that
messages about it point at. Nodes compare by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pyverno.lang.cel.values import Value
from pyverno.value import dataclass

__all__ = [
    "Bind",
    "Call",
    "Comprehension",
    "Entry",
    "Field",
    "Has",
    "Ident",
    "Index",
    "ListLiteral",
    "Literal",
    "Logical",
    "MapLiteral",
    "Node",
    "OptionalMap",
    "Select",
    "StructLiteral",
    "Ternary",
    "children",
    "left_calls",
    "walk",
]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One piece of an expression."""

    id: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Value


@dataclass(frozen=True, slots=True, eq=False)
class Ident(Node):
    """A name; a leading dot (`.name`) skips local variables and the container."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Select(Node):
    """`operand.field`, or `operand.?field` when optional."""

    operand: Node
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Has(Node):
    """`has(operand.field)`."""

    operand: Node
    field: str


@dataclass(frozen=True, slots=True, eq=False)
class Index(Node):
    """`operand[index]`, or `operand[?index]` when optional."""

    operand: Node
    index: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Call(Node):
    """A function or operator; `target` is the receiver of a member call."""

    function: str
    target: Node | None
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Logical(Node):
    """`a && b && c` or `a || b || c`; `operator` is `_&&_` or `_||_`."""

    operator: str
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ternary(Node):
    """`condition ? truthy : falsy`."""

    condition: Node
    truthy: Node
    falsy: Node


@dataclass(frozen=True, slots=True, eq=False)
class ListLiteral(Node):
    """`[a, ?b]`; `optionals` holds the indexes of optional elements."""

    elements: tuple[Node, ...]
    optionals: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Entry(Node):
    """One `key: value` of a map."""

    key: Node
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MapLiteral(Node):
    """`{key: value}`."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field(Node):
    """One `name: value` of a struct."""

    name: str
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StructLiteral(Node):
    """`Type{name: value}`."""

    type_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Comprehension(Node):
    """A loop macro over a list or map.

    `kind` is all, exists, existsOne, map, filter, transformList, transformMap or transformMapEntry. `variables` has one
    name (element or key) or two (index and element, key and value). `condition` is the predicate (None: every
    element), `body` the transformation (None for all, exists, existsOne and filter).
    """

    kind: str
    range: Node
    variables: tuple[str, ...]
    condition: Node | None
    body: Node | None


@dataclass(frozen=True, slots=True, eq=False)
class Bind(Node):
    """`cel.bind(name, value, body)`: the value is computed on first use."""

    name: str
    value: Node
    body: Node


@dataclass(frozen=True, slots=True, eq=False)
class OptionalMap(Node):
    """`target.optMap(name, body)`, or `optFlatMap` when flat."""

    target: Node
    name: str
    body: Node
    flat: bool


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node, in source order.

    >>> [child.name for child in children(Select(2, 1, Ident(1, 0, "a"), "b"))]
    ['a']
    """
    return _CHILDREN[type(node)](node)


def left_calls(node: Node) -> list[Call]:
    """Return the calls on the left spine of a node, innermost first, so that long sums need no deep recursion.

    In `a + b + c` these are `a + b` and `a + b + c`.
    """
    spine: list[Call] = []
    while isinstance(node, Call) and node.target is None and node.args:
        spine.append(node)
        node = node.args[0]
    return spine[::-1]


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, parents first; safe for any depth."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        below = children(current)
        if below:
            waiting.extend(below[::-1])


_CHILDREN: Final[dict[type[Node], Callable[[Any], tuple[Node, ...]]]] = {
    Literal: lambda _: (),
    Ident: lambda _: (),
    Select: lambda node: (node.operand,),
    Has: lambda node: (node.operand,),
    Index: lambda node: (node.operand, node.index),
    Call: lambda node: node.args if node.target is None else (node.target, *node.args),
    Logical: lambda node: node.terms,
    Ternary: lambda node: (node.condition, node.truthy, node.falsy),
    ListLiteral: lambda node: node.elements,
    Entry: lambda node: (node.key, node.value),
    MapLiteral: lambda node: node.entries,
    Field: lambda node: (node.value,),
    StructLiteral: lambda node: node.fields,
    Comprehension: lambda node: tuple(part for part in (node.range, node.condition, node.body) if part is not None),
    Bind: lambda node: (node.value, node.body),
    OptionalMap: lambda node: (node.target, node.body),
}
