"""Paths of JMESPath in CEL: names, fields, indexes and slices.

A field that is missing is null, except at the end of a whole expression, where it is an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from pyverno.compiler.migration.expressions.names import Names
from pyverno.compiler.migration.expressions.value import (
    NOTHING,
    Value,
    below,
    constant,
    of_reference,
)
from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.schema import Presence, Schema, Shape
from pyverno.compiler.migration.text import (
    TRUE,
    Cel,
    CelType,
    Reference,
    call,
    compare,
    literal,
    ternary,
)
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.value import replace

__all__ = ["CHAIN", "PathTranslator", "steps_of"]

CHAIN: Final = (NodeType.SUBEXPRESSION, NodeType.INDEX_EXPRESSION)
_REQUIRED: Final = Presence.REQUIRED
_WORDS: Final = frozenset({"in", "as", "object", "oldObject", "request", "variables", "size", "type", "if", "for"})


class PathTranslator(ABC):
    """Translates paths; `path` is the field of the policy that the expression stands in, for refusals."""

    def __init__(self, names: Names, path: str, placeholders: tuple[Value, ...] = ()) -> None:
        """Take the names of the expression, and the values of the variables that are nested in its text."""
        self.names = names
        self.path = path
        self.placeholders = placeholders
        self.taken = set(names.taken)

    def refuse(self, code: str, reason: str, advice: str = "write the expression by hand") -> UnconvertibleError:
        """Return the error for something that has no form."""
        return UnconvertibleError(code, self.path, reason, advice)

    @abstractmethod
    def quiet(self, node: Node, current: Value | None) -> Value:
        """Translate a node whose missing field is null; `current` is None at the root of the names."""

    @abstractmethod
    def truth_of(self, node: Node, current: Value | None) -> Value:
        """Translate a node of which only the truth is asked; it may stand for a value of another type."""

    def current(self, _node: Node, current: Value | None) -> Value:
        """Return the current value, `@`."""
        if current is None:
            raise self.refuse("whole-context", "`@` is the whole context here")
        return current

    def literal(self, node: Node, _current: Value | None) -> Value:
        """Return a literal."""
        if isinstance(node.value, str) and PLACEHOLDER.search(node.value):
            return self.text_with_holes(node.value)
        if _has_placeholders(node.value):
            raise self.refuse("variable-in-literal", "a literal with a variable inside")
        return constant(node.value)

    def text_with_holes(self, text: str) -> Value:
        """Return a text with placeholders for values."""
        from pyverno.compiler.migration.expressions.concatenation import concatenated

        pieces: list[str | Value] = []
        for index, piece in enumerate(PLACEHOLDER.split(text)):
            if index % 2:
                pieces.append(self.placeholders[int(piece)])
            elif piece:
                pieces.append(piece)
        return concatenated(pieces, self.path)

    def chain(self, node: Node, current: Value | None, *, loud: bool = False) -> Value:
        """Translate `a.b[0].c`; at the root the longest path that is a name counts."""
        steps = steps_of(node)
        if current is None:
            names = []
            for step in steps:
                if step.type is not NodeType.FIELD or PLACEHOLDER.search(step.value):
                    break
                names.append(step.value)
            if not names:
                return self._follow(None, steps, loud=loud)
            found = self.names.find(tuple(names), self.path)
            if found is None:
                text = ".".join(names)
                raise self.refuse("name", f"`{text}` has no counterpart in CEL")
            current, size = found
            steps = steps[size:]
            current = _asserted(current) if loud else current
        return self._follow(current, steps, loud=loud)

    def _follow(self, current: Value | None, steps: list[Node], *, loud: bool) -> Value:
        for step in steps:
            current = self.field(step, current) if step.type is NodeType.FIELD else self.quiet(step, current)
            if loud and step.type is NodeType.FIELD:
                current = _asserted(current)
        assert current is not None  # noqa: S101 - there is at least one step, or a name
        return current

    def field(self, node: Node, current: Value | None) -> Value:
        """Return a field of the current value."""
        if current is None:
            return self.chain(node, current)
        name: str = node.value
        if PLACEHOLDER.search(name):
            key = self.text_with_holes(name)
            return self.entry(current, key)
        if current.is_null or current.is_constant:
            inner = current.constant.get(name) if isinstance(current.constant, dict) else None
            return constant(inner)
        if current.members:
            return current.members.get(name, NOTHING)
        if current.shape not in (Shape.OBJECT, Shape.MAP, Shape.ANY):
            return NOTHING  # JMESPath: a field of a list or text is null
        if current.shape is Shape.OBJECT and not current.schema.is_open and name not in current.schema.names:
            return NOTHING  # no admitted object has it
        guard = current.guard if current.reference is not None else current.present
        found = of_reference(below(current).field(name), guard)
        optional = found.optional
        if optional is None and current.optional is not None:
            step = below(current).field(name).steps[-1]
            optional = Cel(current.optional.text + step.select(optional=True), CelType.OPTIONAL, schema=found.schema)
        return replace(found, optional=optional, fails=current.fails)

    def entry(self, holder: Value, key: Value) -> Value:
        """Return the entry of a map at a key that is computed."""
        if not (holder.shape is Shape.MAP and key.is_text and key.is_always and holder.is_always):
            raise self.refuse("computed-key", "a field whose name is computed")
        return self.lookup(holder, key)

    def lookup(self, holder: Value, key: Value) -> Value:
        """Return the entry of a map at a key."""
        schema = holder.schema.values
        optional = Cel(f"{holder.or_empty().within(TRUE.level)}[?{key.cel.text}]", CelType.OPTIONAL, schema=schema)
        return Value(
            optional.method("value"),
            schema,
            optional.method("hasValue", returns=CelType.BOOL),
            optional=optional,
            fails=holder.fails or key.fails,
        )

    def index(self, node: Node, current: Value | None) -> Value:
        """Return an item of a list, null where there is none."""
        number = node.value
        if current is None or not isinstance(number, int):
            raise self.refuse("computed-index", "an index that is computed")
        if current.is_null or current.shape not in (Shape.LIST, Shape.ANY):
            return NOTHING
        if current.is_constant:
            items = current.constant
            return constant(items[number] if -len(items) <= number < len(items) else None)
        schema = self.element_schema(current)
        if current.sequence is not None and current.sequence.element.is_constant:
            schema = current.sequence.element.schema
        if number < 0:
            items = current.or_empty()
            size = call("size", items, returns=CelType.INT)
            present = compare(size, ">=", literal(-number))
            place = f"[size({items.text}) - {-number}]"
            return Value(Cel(items.within(TRUE.level) + place, schema=schema), schema, present, fails=current.fails)
        holder = current.optional if current.optional is not None and not current.is_always else current.or_empty()
        optional = Cel(f"{holder.within(TRUE.level)}[?{number}]", CelType.OPTIONAL, schema=schema)
        cel = Cel(f"{current.cel.within(TRUE.level)}[{number}]", _cel_type(schema), schema=schema)
        present = optional.method("hasValue", returns=CelType.BOOL)
        return Value(cel, schema, present, optional=optional, fails=current.fails)

    def slice(self, node: Node, current: Value | None) -> Value:
        """Return a part of a list."""
        start, stop, step = node.value
        if current is None or any(isinstance(part, str) for part in node.value):
            raise self.refuse("computed-slice", "a slice whose bounds are computed")
        if step not in (None, 1) or (start or 0) < 0 or (stop is not None and stop < 0):
            raise self.refuse("slice", "a slice that steps or counts from the end")
        if current.is_null or current.shape is not Shape.LIST:
            return NOTHING
        items = current.or_empty()
        size = call("size", items, returns=CelType.INT)
        first = literal(start or 0)
        if stop is None:
            sliced = items.method("slice", first, size, returns=CelType.LIST)
            if not (start or 0):
                return current
        else:
            last = call("math.least", literal(stop), size, returns=CelType.INT)
            sliced = items.method("slice", first, last, returns=CelType.LIST)
        if (start or 0) > 0:
            sliced = ternary(compare(size, ">", first), sliced, literal([]))
        schema = replace(current.schema, is_nullable=False)
        return Value(replace(sliced, schema=schema), schema, current.present, fails=current.fails)

    def element_schema(self, value: Value) -> Schema:
        """Return the schema of a list's elements."""
        if value.is_constant and isinstance(value.constant, list) and value.constant:
            return constant(value.constant[0]).schema
        if value.sequence is not None:
            return value.sequence.element.schema
        if value.default is not None:
            return self.element_schema(value.default[0])
        return value.schema.element

    def fresh(self, hint: str) -> str:
        """Return a name for the variable of a loop that no loop around it has."""
        for size in range(1, len(hint) + 1):
            if hint[:size] not in self.taken and hint[:size] not in _WORDS:
                break
        else:
            size = len(hint)
        name, number = hint[:size], 2
        while name in self.taken or name in _WORDS:
            name, number = f"{hint[:1]}{number}", number + 1
        self.taken.add(name)
        return name


def steps_of(node: Node) -> list[Node]:
    """Unfold `a.b[0].c` into the nodes that apply one after the other."""
    found: list[Node] = []
    todo = [node]
    while todo:
        current = todo.pop()
        if current.type in CHAIN:
            todo.extend((current.children[1], current.children[0]))
        else:
            found.append(current)
    needed = [step for step in found if step.type is not NodeType.IDENTITY]
    return needed or found[:1]


def _asserted(value: Value) -> Value:
    """Return a value whose path must exist: where a field of it is missing, it is an error."""
    reference = value.reference
    if reference is None or not reference.can_be_missing:
        return value
    steps = tuple(replace(step, schema=replace(step.schema, presence=_REQUIRED)) for step in reference.steps)
    found = of_reference(replace(reference, steps=steps), value.guard)
    schema = replace(found.schema, is_nullable=False)
    return replace(found, schema=schema, fails=True)


def _cel_type(schema: Schema) -> CelType:
    return Reference("x", schema).type


def _has_placeholders(value: JSON) -> bool:
    match value:
        case str():
            return bool(PLACEHOLDER.search(value))
        case list():
            return any(map(_has_placeholders, value))
        case dict():
            return any(PLACEHOLDER.search(key) or _has_placeholders(each) for key, each in value.items())
    return False
