"""Projections, filters and flattening of JMESPath in CEL, as loops."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.expressions.loops import Loop, Sequence
from pyverno.compiler.migration.expressions.paths import PathTranslator
from pyverno.compiler.migration.expressions.value import (
    NOTHING,
    TEXTS,
    Value,
    constant,
    list_of,
    of_reference,
    truth,
)
from pyverno.compiler.migration.schema import ANY, Presence, Schema, Shape
from pyverno.compiler.migration.text import (
    TRUE,
    Cel,
    CelType,
    Level,
    Reference,
    all_of,
    call,
    element,
    ternary,
)
from pyverno.kube.json import JSON
from pyverno.lang.jmespath.ast import Node, NodeType
from pyverno.lang.jmespath.tokens import PLACEHOLDER
from pyverno.value import replace

__all__ = ["ProjectionTranslator"]

_SUM: Final = Level.SUM
_ARTICLES: Final = {
    Shape.LIST: "a list",
    Shape.INT: "a number",
    Shape.STRING: "a text",
    Shape.MAP: "a map",
    Shape.BOOL: "true or false",
}
_REQUIRED: Final = Presence.REQUIRED
_PROJECTIONS: Final = (NodeType.PROJECTION, NodeType.FILTER_PROJECTION, NodeType.VALUE_PROJECTION)


class ProjectionTranslator(PathTranslator):
    """Translates what goes over lists and maps."""

    def flatten(self, node: Node, current: Value | None) -> Value:
        """Return the list of a flattened value: elements that are lists give their own elements."""
        inner = node.children[0]
        left = self.absorbed(self.quiet(inner, current))
        if left.is_null:
            return NOTHING
        if left.parts is not None and not left.is_constant:
            return self.flattened_parts(left)
        if left.is_constant:
            return self.flattened_constant(left)
        if left.shape is not Shape.LIST:
            if left.shape is not Shape.ANY:
                return NOTHING
            left = self.assumed(left, Shape.LIST)
        sequence = left.sequence or self.sequence_of(left, inner)
        item = sequence.element
        if item.shape is Shape.ANY and _is_projection(inner):
            item = self.assumed(item, Shape.LIST)
            sequence = replace(sequence, element=item)
        if item.shape is Shape.ANY:
            self.note_untyped(left)
        if item.shape is Shape.LIST:
            sequence = self.nested(sequence, inner)
        return list_of(sequence, TEXTS if left.sequence is not None else left.schema, left.present)

    def nested(self, sequence: Sequence, node: Node) -> Sequence:
        """Return the elements of the lists that a sequence gives."""
        holder = sequence.element
        if holder.parts is not None and not holder.is_constant:
            holder = self.flattened_parts(holder)
        if holder.sequence is not None:
            return Sequence((*sequence.loops, *holder.sequence.loops), holder.sequence.element)
        variable = self.fresh(hint_of(node))
        loop = Loop(variable, holder.or_empty(), holder.cel)
        return Sequence((*sequence.loops, loop), self.variable(variable, self.element_schema(holder)))

    def flattened_parts(self, left: Value) -> Value:
        """Return `[a, b, c][]`: lists give their elements, other values themselves, null nothing."""
        lists: list[Cel] = []
        loose: list[str] = []
        schemas: list[Schema] = []
        for part in left.parts or ():
            if part.is_null:
                continue
            if part.shape is Shape.LIST:
                if loose:
                    lists.append(Cel(f"[{', '.join(loose)}]", CelType.LIST))
                    loose = []
                lists.append(part.or_empty())
                schemas.append(self.element_schema(part))
                continue
            if part.shape is Shape.ANY:
                self.note_untyped(part)
            schemas.append(part.schema)
            if part.is_always:
                loose.append(part.cel.text if part.reference is not None else f"dyn({part.cel.text})")
            elif part.optional is not None and not part.schema.is_nullable:
                loose.append(f"?{part.optional.text}")
            else:
                chosen = ternary(part.present, call("optional.of", part.cel), call("optional.none"))
                loose.append(f"?{chosen.within(TRUE.level)}")
        if loose:
            lists.append(Cel(f"[{', '.join(loose)}]", CelType.LIST))
        if not lists:
            return constant([])
        text = " + ".join(each.within(_SUM) for each in lists)
        joined = lists[0] if len(lists) == 1 else Cel(text, CelType.LIST, _SUM)
        schema = _common(schemas)
        variable = self.fresh(_common_hint(left.parts or ()))
        sequence = Sequence((Loop(variable, joined, joined),), self.variable(variable, schema))
        fails = any(part.fails for part in left.parts or ())
        return replace(list_of(sequence, TEXTS, left.present), fails=fails)

    def flattened_constant(self, left: Value) -> Value:
        """Return a flattened literal."""
        if not isinstance(left.constant, list):
            return NOTHING
        flat: list[JSON] = []
        for item in left.constant:
            flat += item if isinstance(item, list) else [item]
        return constant(flat)

    def projection(self, node: Node, current: Value | None) -> Value:
        """Return the results of an expression for each element of a list."""
        left = self.quiet(node.children[0], current)
        if node.children[0].type is not NodeType.FLATTEN and left.shape is Shape.ANY and not left.is_null:
            left = self.assumed(left, Shape.LIST)
        return self.project(left, node.children[0], node.children[1])

    def project(self, left: Value, source: Node, right: Node, condition: Node | None = None) -> Value:
        """Return the results of `right` for the elements of a list that fulfil a condition; null is left out."""
        if left.is_null or left.shape is not Shape.LIST:
            return NOTHING
        if left.is_constant and not left.constant:
            return left
        sequence = left.sequence or self.sequence_of(left, source)
        if condition is not None:
            met = self.truth_of(condition, sequence.element)
            last = sequence.loops[-1]
            needed = sequence.element.present
            last = replace(last, condition=all_of([last.condition, needed, truth(met)]))
            sequence = replace(sequence, loops=(*sequence.loops[:-1], last))
            sequence = replace(sequence, element=replace(sequence.element, present=TRUE, guard=TRUE))
        result = sequence.element if right.type is NodeType.IDENTITY else self.quiet(right, sequence.element)
        if result.is_null:
            return constant([])
        present = all_of([sequence.element.present, result.present])
        made = Sequence(sequence.loops, replace(result, present=present))
        schema = left.schema if result is sequence.element and left.sequence is None else TEXTS
        return replace(list_of(made, schema, left.present), fails=left.fails or result.fails)

    def filter_projection(self, node: Node, current: Value | None) -> Value:
        """Return the results for the elements that fulfil a condition."""
        left = self.absorbed(self.quiet(node.children[0], current))
        if left.shape is Shape.ANY and not left.is_null:
            left = self.assumed(left, Shape.LIST)
        return self.project(left, node.children[0], node.children[1], node.children[2])

    def value_projection(self, node: Node, current: Value | None) -> Value:
        """Return the results for each value of a map."""
        left = self.absorbed(self.quiet(node.children[0], current))
        if left.is_null or left.shape is not Shape.MAP:
            raise self.refuse("values", "`*` over something that is no map with free keys")
        values = self.values_of(left)
        return self.project(values, node.children[0], node.children[1])

    def values_of(self, left: Value) -> Value:
        """Return the values of a map; their order is that of the keys in CEL."""
        variable = self.fresh("k")
        source = left.or_empty()
        schema = left.schema.values
        holder = left.default[0] if left.default is not None else left
        item = Reference(f"{holder.cel.within(TRUE.level)}[{variable}]", replace(schema, presence=_REQUIRED))
        sequence = Sequence((Loop(variable, source, left.cel, is_map=True),), of_reference(item))
        return replace(list_of(sequence, TEXTS, left.present), fails=left.fails)

    def keys_of(self, left: Value) -> Value:
        """Return the keys of a map."""
        variable = self.fresh("k")
        item = Value(Cel(variable, CelType.STRING), Schema(Shape.STRING, _REQUIRED))
        sequence = Sequence((Loop(variable, left.or_empty(), left.cel, is_map=True),), item)
        return replace(list_of(sequence, TEXTS, left.present), fails=left.fails)

    def sequence_of(self, value: Value, node: Node | None = None) -> Sequence:
        """Return the loop over a list."""
        if value.sequence is not None:
            return value.sequence
        variable = self.fresh(hint_of(node) if node is not None else "e")
        schema = self.element_schema(value)
        return Sequence((Loop(variable, value.or_empty(), value.cel),), self.variable(variable, schema))

    def variable(self, name: str, schema: Schema) -> Value:
        """Return the value of a variable that a loop binds."""
        return of_reference(element(name, replace(schema, is_nullable=False)))

    def absorbed(self, value: Value) -> Value:
        """Return a value as it counts where JMESPath reads the error of a null argument as null."""
        if not value.nulls:
            return value
        return replace(value, present=all_of([*value.nulls, value.present]), fails=False, nulls=())

    def assumed(self, value: Value, shape: Shape) -> Value:
        """Return an unknown value as one of a type that the rule shows, with a note."""
        self.names.note(
            "assumed-type",
            self.path,
            f"no schema is known for `{value.cel.text}`: the rule reads it as {_ARTICLES.get(shape, shape.value)}",
        )
        return value.as_type(shape)

    def note_untyped(self, value: Value) -> None:
        """Add a note that a value of unknown type is assumed not to be a list."""
        self.names.note(
            "assumed-type", self.path, f"no schema is known for `{value.cel.text}`: it is taken for no list"
        )


def _common(schemas: list[Schema]) -> Schema:
    """Return the schema of values of several ones: that of the first where the others have its fields."""
    first = schemas[0]
    if len({(each.shape, each.definition) for each in schemas}) == 1:
        return first
    if first.shape is not Shape.OBJECT or any(each.shape is not Shape.OBJECT for each in schemas):
        return ANY
    shared = [name for name in first.names if all(name in each.names for each in schemas)]
    alike = all(each.field(name).shape is first.field(name).shape for each in schemas for name in shared)
    return first if alike else ANY


def _is_projection(node: Node) -> bool:
    return node.type in (NodeType.PROJECTION, NodeType.FILTER_PROJECTION, NodeType.VALUE_PROJECTION)


def hint_of(node: Node) -> str:
    """Return the singular of the last field that an expression names, for the variable of a loop over it."""
    last = "e"
    todo = [node]
    while todo:
        current = todo.pop()
        if current.type is NodeType.FIELD and not PLACEHOLDER.search(current.value):
            last = current.value
            break
        if current.type in (NodeType.PIPE, NodeType.SUBEXPRESSION, NodeType.INDEX_EXPRESSION, *_PROJECTIONS):
            todo.extend(current.children[:2])
        elif current.type in (NodeType.OR, NodeType.FLATTEN, NodeType.FUNCTION):
            todo.extend(current.children[:1])
    return _singular(last)


def _common_hint(parts: tuple[Value, ...]) -> str:
    names = [part.reference.steps[-1].name for part in parts if part.reference is not None and part.reference.steps]
    if any(name.lower().endswith("containers") for name in names):
        return "container"
    return _singular(names[0]) if names else "e"


def _singular(name: str) -> str:
    letters = "".join(each for each in name if each.isalpha() and each.isascii()).lower()
    return letters.removesuffix("s") or "e"
