"""Evidence of JMESPath expressions about the fields that they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyverno.compiler.migration.inference.evidence import Evidence, type_of
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.value import dataclass, field

__all__ = ["NOTHING", "Places", "place_of", "read_query"]


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The result of an expression: places of the object, a list that it makes of others, or a map of named values.

    `is_mixed` marks a list whose elements were written one by one, so that they need not be of one type.
    """

    direct: tuple[Evidence, ...] = ()
    parts: tuple[Places, ...] = ()
    members: Mapping[str, Places] = field(default_factory=dict)
    is_mixed: bool = False

    def at(self, name: str) -> Places:
        """Return a field."""
        if self.members:
            return self.members.get(name, NOTHING)
        return Places(tuple(each.field(name) for each in self.direct))

    def elements(self) -> Places:
        """Return the elements of a list."""
        direct = [each.element() for each in self.direct] + [each for part in self.parts for each in part.direct]
        members = next((part.members for part in self.parts if part.members), {})
        return Places(tuple(direct), tuple(inner for part in self.parts for inner in part.parts), members)

    def show(self, name: str) -> None:
        """Note a type of the values."""
        for each in self.direct:
            each.show(name)

    def suspect(self, name: str) -> None:
        """Note a type of the values, if nothing else shows one."""
        for each in self.direct:
            each.suspect(name)

    def show_member(self, name: str) -> None:
        """Note the type of the values, or of their elements."""
        for each in self.direct:
            each.show_member(name)
        for part in self.parts:
            part.show_member(name)

    def remember(self, value: JSON) -> None:
        """Keep a constant that the values, or elements of them, are held against."""
        for each in self.direct:
            each.remember(value)
        for part in self.parts:
            part.remember(value)

    def compare_with(self, value: JSON) -> None:
        """Note that the values are compared with a constant."""
        for each in self.direct:
            each.compare_with(value)

    def joined(self, other: Places) -> Places:
        """Return the places of either."""
        return Places(
            self.direct + other.direct, self.parts + other.parts, {**other.members, **self.members}, self.is_mixed
        )


NOTHING: Final = Places()


def place_of(found: Evidence) -> Places:
    """Return one place."""
    return Places((found,))


def read_query(node: Node, current: Places) -> Places:
    """Note evidence on the values that an expression reads, and return its result's; `current` is the value of `@`."""
    method = _METHODS.get(node.type)
    if method is not None:
        return method(node, current)
    for child in node.children:
        read_query(child, current)
    return NOTHING


def _current(_node: Node, current: Places) -> Places:
    return current


def _field(node: Node, current: Places) -> Places:
    return NOTHING if PLACEHOLDER.search(node.value) else current.at(node.value)


def _chain(node: Node, current: Places) -> Places:
    return read_query(node.children[1], read_query(node.children[0], current))


def _flatten(node: Node, current: Places) -> Places:
    found = read_query(node.children[0], current)
    parts = [Places((each.element(),)) for each in found.direct]
    for part in found.parts:
        if part.parts:
            parts.extend(part.parts)
        elif found.is_mixed and not any(each.is_list for each in part.direct):
            parts.append(part)
        elif part.direct:
            parts.append(part.elements())
        else:
            parts.append(part)
    return Places(parts=tuple(parts))


def _projection(node: Node, current: Places) -> Places:
    found = read_query(node.children[0], current)
    parts = found.parts if found.parts else (found.elements(),)
    if len(node.children) > 2:
        for part in parts:
            _as_condition(node.children[2], part)
    return Places(parts=tuple(read_query(node.children[1], part) for part in parts))


def _value_projection(node: Node, current: Places) -> Places:
    found = read_query(node.children[0], current)
    entries = Places(tuple(each.entry() for each in found.direct))
    return Places(parts=(read_query(node.children[1], entries),))


def _index(_node: Node, current: Places) -> Places:
    return current.elements()


def _slice(_node: Node, current: Places) -> Places:
    return Places(parts=(current.elements(),))


def _comparator(node: Node, current: Places) -> Places:
    sides = [read_query(child, current) for child in node.children]
    for side, other in zip(sides, reversed(node.children), strict=True):
        if other.type is NodeType.LITERAL:
            side.compare_with(other.value)
            for part in side.parts:
                part.remember(other.value)
        elif node.value not in ("tEQ", "tNE"):
            side.suspect("integer")
    return NOTHING


def _either(node: Node, current: Places) -> Places:
    found = NOTHING
    for number, child in enumerate(node.children):
        value = read_query(child, current)
        other = node.children[1 - number]
        if other.type in _WRITTEN:
            value.compare_with(_constant(other))
        found = found.joined(value)
    return found


def _both(node: Node, current: Places) -> Places:
    _as_condition(node.children[0], current)
    return read_query(node.children[1], current)


def _negation(node: Node, current: Places) -> Places:
    _as_condition(node.children[0], current)
    return NOTHING


def _as_condition(node: Node, current: Places) -> None:
    """Read an expression of which only the truth counts: most fields that expressions test are booleans."""
    read_query(node, current).suspect("boolean")


def _places_in_list(node: Node, current: Places) -> Places:
    return Places(parts=tuple(read_query(child, current) for child in node.children), is_mixed=True)


def _hash(node: Node, current: Places) -> Places:
    return Places(members={child.value: read_query(child.children[0], current) for child in node.children})


# ----------------------------------------------------------------------------------------------------------- functions


def _function(node: Node, current: Places) -> Places:
    name: str = node.value
    values = [NOTHING if child.type is NodeType.EXPREF else read_query(child, current) for child in node.children]
    for child in node.children:
        if child.type is NodeType.EXPREF and values:
            read_query(child.children[0], values[0].elements())
    if name == "contains" and len(values) == 2:
        _read_contains(node, *values)
    for value in values[:2]:
        for child in node.children:
            if child.type in _WRITTEN:
                value.remember(_constant(child))
    if name == "length" and values:
        values[0].suspect("array")
    for value, type_ in zip(values, _ARGUMENTS.get(name, ()), strict=False):
        if type_:
            value.show(type_)
    for value in values if name in _ARITHMETIC else ():
        value.suspect("integer")
    if name in _KEPT and values:
        return values[0]
    if name in _ELEMENT and values:
        return values[0].elements()
    if name == "values" and values:
        return Places(parts=(Places(tuple(each.entry() for each in values[0].direct)),))
    return NOTHING


def _read_contains(node: Node, holder: Places, member: Places) -> None:
    first, second = node.children
    if first.type in _WRITTEN:
        members = _constant(first)
        for each in members if isinstance(members, list) else ():
            member.show(type_of(each))
    elif second.type is NodeType.LITERAL and not isinstance(second.value, str):
        holder.elements().show(type_of(second.value))
    else:
        holder.show_member("string")


def _constant(node: Node) -> JSON:
    """Return the value of a literal, or of a list of literals."""
    return node.value if node.type is NodeType.LITERAL else [child.value for child in node.children]


_WRITTEN: Final = (NodeType.LITERAL, NodeType.MULTI_SELECT_LIST)
_TEXT: Final = "string"
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "starts_with": (_TEXT, _TEXT),
    "ends_with": (_TEXT, _TEXT),
    "regex_match": (_TEXT, _TEXT),
    "regex_replace_all": (_TEXT, _TEXT, _TEXT),
    "regex_replace_all_literal": (_TEXT, _TEXT, _TEXT),
    "pattern_match": (_TEXT, ""),
    "to_upper": (_TEXT,),
    "to_lower": (_TEXT,),
    "trim": (_TEXT, _TEXT),
    "trim_prefix": (_TEXT, _TEXT),
    "split": (_TEXT, _TEXT),
    "replace": (_TEXT, _TEXT, _TEXT),
    "replace_all": (_TEXT, _TEXT, _TEXT),
    "truncate": (_TEXT,),
    "semver_compare": (_TEXT, _TEXT),
    "parse_json": (_TEXT,),
    "parse_yaml": (_TEXT,),
    "base64_decode": (_TEXT,),
    "base64_encode": (_TEXT,),
    "equal_fold": (_TEXT, _TEXT),
    "compare": (_TEXT, _TEXT),
    "is_external_url": (_TEXT,),
    "path_canonicalize": (_TEXT,),
    "join": (_TEXT, "array"),
    "keys": ("object",),
    "values": ("object",),
    "label_match": ("object", "object"),
    "sum": ("array",),
    "max": ("array",),
    "min": ("array",),
    "sort": ("array",),
    "reverse": ("array",),
    "sort_by": ("array",),
    "max_by": ("array",),
    "min_by": ("array",),
    "map": ("", "array"),
    **dict.fromkeys(("time_before", "time_after", "time_diff", "time_parse", "time_add"), (_TEXT, _TEXT)),
}
"""Types of arguments by the name of the function."""

_ARITHMETIC: Final = ("add", "subtract", "multiply", "divide", "modulo", "abs", "ceil", "floor")
_KEPT: Final = ("not_null", "sort", "reverse", "sort_by", "to_array")
"""Functions that give their first argument, or a list of its elements."""

_ELEMENT: Final = ("max", "min", "max_by", "min_by")
"""Functions that give an element of their first argument."""

_METHODS: Final[Mapping[NodeType, Callable[[Node, Places], Places]]] = {
    NodeType.CURRENT: _current,
    NodeType.IDENTITY: _current,
    NodeType.FIELD: _field,
    NodeType.SUBEXPRESSION: _chain,
    NodeType.INDEX_EXPRESSION: _chain,
    NodeType.PIPE: _chain,
    NodeType.INDEX: _index,
    NodeType.SLICE: _slice,
    NodeType.FLATTEN: _flatten,
    NodeType.PROJECTION: _projection,
    NodeType.FILTER_PROJECTION: _projection,
    NodeType.VALUE_PROJECTION: _value_projection,
    NodeType.COMPARATOR: _comparator,
    NodeType.OR: _either,
    NodeType.AND: _both,
    NodeType.NOT: _negation,
    NodeType.MULTI_SELECT_LIST: _places_in_list,
    NodeType.MULTI_SELECT_HASH: _hash,
    NodeType.FUNCTION: _function,
}
