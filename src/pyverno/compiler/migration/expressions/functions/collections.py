"""Functions on lists and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pyverno.compiler.migration.expressions.functions.arguments import (
    Translation,
    list_cel,
    made,
    text_cel,
    unsupported,
)
from pyverno.compiler.migration.expressions.loops import Loop, Sequence
from pyverno.compiler.migration.expressions.value import (
    BOOLEAN,
    INTEGER,
    NOTHING,
    TEXT,
    TEXTS,
    Value,
    are_alike,
    constant,
    equal,
    list_of,
    truth,
)
from pyverno.compiler.migration.schema import Presence, Shape
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    all_of,
    any_of,
    call,
    compare,
    literal,
    quote,
    ternary,
)
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.translator import Translator

__all__ = ["FUNCTIONS"]

_MAPS: Final = (Shape.MAP, Shape.OBJECT, Shape.ANY)
_SIZED: Final = (Shape.STRING, Shape.LIST, Shape.MAP, Shape.OBJECT, Shape.ANY)


def length(translator: Translator, value: Value) -> Value:
    """`length` of a text counts characters, of a list items, of a map keys."""
    if value.default is not None and not are_alike(value.default[0], constant(value.default[1])):
        first, otherwise = value.default[0], length(translator, constant(value.default[1]))
        counted = length(translator, replace(first, present=TRUE))
        return Value(ternary(truth(first), counted.cel, otherwise.cel), INTEGER, fails=value.fails)
    if value.is_null or value.shape not in _SIZED:
        raise translator.refuse("always-an-error", f"length() of a {value.shape.value} is an error", "mend the rule")
    if value.is_constant:
        return constant(len(value.constant))
    if value.members:
        return constant(len(value.members))
    inner = list_cel(translator, "length", value) if value.shape is Shape.LIST else value.cel
    return replace(made(call("size", inner, returns=CelType.INT), INTEGER, value), counted=value)


def contains(translator: Translator, holder: Value, wanted: Value) -> Value:
    """`contains` looks for an item of a list, or a text within a text."""
    if holder.is_null:
        raise translator.refuse("always-an-error", "contains() of null is an error on every object", "mend the rule")
    if holder.shape is Shape.STRING or (holder.shape in (Shape.QUANTITY, Shape.TIME)):
        if wanted.is_constant and not isinstance(wanted.constant, str):
            return made(FALSE, BOOLEAN, holder)
        cel = holder.cel.method("contains", text_cel(translator, "contains", wanted), returns=CelType.BOOL)
        return made(cel, BOOLEAN, holder, wanted)
    if holder.shape is Shape.ANY:
        return _contains_unknown(translator, holder, wanted)
    if holder.shape is not Shape.LIST:
        raise translator.refuse("always-an-error", f"contains() of a {holder.shape.value} is an error", "mend the rule")
    fails = holder.fails or wanted.fails or not holder.is_always
    nulls = () if holder.is_always else (holder.present,)
    if holder.sequence is not None and holder.is_always:
        keys = _keys_source(holder)
        if keys is not None and wanted.is_text and wanted.is_always:
            return Value(compare(wanted.cel, "in", keys), BOOLEAN, fails=fails)
        if wanted.is_always and (found := holder.sequence.includes(wanted.cel)) is not None:
            return Value(found, BOOLEAN, fails=fails)
        return Value(holder.sequence.exists(lambda item: equal(item, wanted)), BOOLEAN, fails=fails)
    if holder.is_constant and not holder.constant:
        return constant(value=False)
    found = compare(_neutral(holder, wanted), "in", list_cel(translator, "contains", holder))
    return Value(found, BOOLEAN, fails=fails, nulls=nulls)


def _neutral(holder: Value, wanted: Value) -> Cel:
    """Return a value to look for; one that is missing is looked for as null, which lists seldom hold."""
    if wanted.is_always:
        return wanted.cel
    return wanted.or_value(literal(None)) if not holder.is_constant else _apart(holder, wanted)


def _apart(holder: Value, wanted: Value) -> Cel:
    if wanted.is_text and "" not in holder.constant:
        return wanted.or_value(literal(""))
    return wanted.or_value(Cel("dyn(null)"))


def _contains_unknown(translator: Translator, holder: Value, wanted: Value) -> Value:
    translator.names.note(
        "assumed-type",
        translator.path,
        f"no schema is known for `{holder.cel.text}`: contains() looks at its type at run time",
    )
    is_text = compare(call("type", holder.cel), "==", Cel("string"))
    within = holder.cel.method("contains", text_cel(translator, "contains", wanted), returns=CelType.BOOL)
    found = compare(wanted.cel, "in", holder.cel)
    return made(ternary(is_text, within, found), BOOLEAN, holder, wanted)


def _keys_source(holder: Value) -> Cel | None:
    """Return the map whose keys a list holds, None for other lists."""
    sequence = holder.sequence
    if sequence is None or len(sequence.loops) != 1 or sequence.loops[0].condition.text != "true":
        return None
    loop = sequence.loops[0]
    return loop.source if loop.is_map and sequence.element.cel.text == loop.variable else None


def keys(translator: Translator, value: Value) -> Value:
    """`keys` gives the keys of a map, sorted; a loop over a map does so too, in some order."""
    if value.is_null or value.shape not in _MAPS:
        raise translator.refuse("always-an-error", f"keys() of a {value.shape.value} is an error", "mend the rule")
    if value.keys is not None:
        return replace(value.keys, fails=value.fails)
    found = translator.keys_of(value if value.shape is not Shape.ANY else translator.assumed(value, Shape.MAP))
    if value.is_always:
        return found
    return replace(found, fails=True, nulls=(value.present,), present=TRUE)


def values(translator: Translator, value: Value) -> Value:
    """`values` gives the values of a map, in the order of its keys; a loop over a map gives some order."""
    if value.is_null or value.shape not in (Shape.MAP, Shape.ANY):
        raise unsupported(translator, "values", "of something that is no map with free keys")
    found = translator.values_of(value if value.shape is Shape.MAP else translator.assumed(value, Shape.MAP))
    if value.is_always:
        return found
    return replace(found, fails=True, nulls=(value.present,), present=TRUE)


def sort(translator: Translator, value: Value) -> Value:
    """`sort` orders texts or numbers."""
    return made(list_cel(translator, "sort", value).method("sort", returns=CelType.LIST), value.schema, value)


def reverse(translator: Translator, value: Value) -> Value:
    """`reverse` turns a list around; CEL has no such function for texts in policies."""
    if value.shape is not Shape.LIST:
        raise unsupported(translator, "reverse", "of a text has no form in CEL")
    return made(list_cel(translator, "reverse", value).method("reverse", returns=CelType.LIST), value.schema, value)


def not_null(_translator: Translator, *given: Value) -> Value:
    """`not_null` gives the first argument that is there."""
    found = NOTHING
    for value in reversed(given):
        fails = value.fails or found.fails
        if value.is_always or found.is_null:
            found = value
        elif found.is_always:
            schema = replace(value.schema, presence=Presence.OPTIONAL)
            found = Value(value.or_value(found.cel), schema, fails=fails)
        else:
            cel = ternary(value.present, value.cel, found.cel)
            found = Value(cel, value.schema, any_of([value.present, found.present]), fails=fails)
    return found


def label_match(translator: Translator, wanted: Value, labels: Value) -> Value:
    """`label_match` requires every pair of one map in another."""
    if not wanted.is_constant or not isinstance(wanted.constant, dict):
        raise unsupported(translator, "label_match", "with labels that are computed")
    if labels.shape is not Shape.MAP:
        raise unsupported(translator, "label_match", "of something that is no map")
    source = labels.default[0] if labels.default is not None and labels.default[1] == {} else labels
    tests = []
    for name, value in wanted.constant.items():
        if source.reference is not None and source.guard.text == "true":
            entry = source.reference.field(name)
            text = entry.or_value(literal("")) if value != "" else None
            same = compare(text or entry.value(), "==", literal(value))
            tests.append(same if value != "" else all_of([entry.is_present(), same]))
        else:
            found = Cel(f"{labels.cel.within(TRUE.level)}[?{quote(name)}]", CelType.OPTIONAL)
            tests.append(compare(found.method("orValue", literal(None)), "==", literal(value)))
    result = made(all_of(tests), BOOLEAN, labels)
    return replace(result, fails=False, nulls=()) if labels.is_always else result


def lookup(translator: Translator, holder: Value, key: Value) -> Value:
    """`lookup` gives the entry at a key or index, null where there is none."""
    if holder.shape is Shape.MAP and key.is_text:
        return translator.lookup(holder, key)
    if holder.shape is Shape.LIST and key.is_constant and isinstance(key.constant, int) and key.constant >= 0:
        optional = Cel(f"{holder.or_empty().within(TRUE.level)}[?{key.constant}]", CelType.OPTIONAL)
        schema = translator.element_schema(holder)
        present = optional.method("hasValue", returns=CelType.BOOL)
        return Value(optional.method("value"), schema, present, optional=optional, fails=holder.fails)
    raise unsupported(translator, "lookup", "of something whose type no schema shows")


def object_from_lists(translator: Translator, names: Value, _values: Value) -> Value:
    """`object_from_lists` makes a map; only its keys have a form, as a list without repeats."""
    inner = list_cel(translator, "object_from_lists", names)
    variable = translator.fresh("k")
    distinct = inner.method("distinct", returns=CelType.LIST)
    item = Value(Cel(variable, CelType.STRING), TEXT)
    listed = list_of(Sequence((Loop(variable, distinct, distinct),), item))
    schema = replace(TEXTS, shape=Shape.MAP)
    return replace(made(Cel("{}", CelType.MAP), schema, names), keys=listed)


def to_array(translator: Translator, value: Value) -> Value:
    """`to_array` wraps what is no list, null as well."""
    if value.shape is Shape.LIST:
        listed = value.or_value(Cel("[dyn(null)]", CelType.LIST))
        return value if value.is_always else Value(listed, TEXTS, fails=value.fails)
    if value.shape is Shape.ANY:
        raise unsupported(translator, "to_array", "of something that may be a list or not")
    cel = Cel(f"[{value.or_value(literal(None)).text}]", CelType.LIST)
    return Value(cel, TEXTS, parts=(value,), fails=value.fails)


def _extreme(name: str, place: str) -> Translation:
    def translate(translator: Translator, value: Value) -> Value:
        inner = list_cel(translator, name, value)
        schema = translator.element_schema(value)
        found = inner.method(place)
        if schema.shape not in (Shape.INT, Shape.NUMBER, Shape.STRING):
            raise unsupported(translator, name, "of a list whose items no schema shows to be numbers or texts")
        present = compare(call("size", inner, returns=CelType.INT), ">", literal(0))
        result = made(found, replace(schema, presence=Presence.REQUIRED), value)
        return replace(result, present=present)

    return translate


def mapped(translator: Translator, expression: Callable[[Value], Value], items: Value) -> Value:
    """`map` applies an expression to every item; nulls stay."""
    sequence = translator.sequence_of(items)
    result = expression(sequence.element)
    if not result.is_always:
        raise unsupported(translator, "map", "with results that can be null")
    made_of = list_of(replace(sequence, element=result), TEXTS, items.present)
    return replace(made_of, fails=items.fails or result.fails)


FUNCTIONS: Final[Mapping[str, Translation]] = {
    "length": length,
    "contains": contains,
    "keys": keys,
    "values": values,
    "sort": sort,
    "reverse": reverse,
    "not_null": not_null,
    "label_match": label_match,
    "lookup": lookup,
    "object_from_lists": object_from_lists,
    "to_array": to_array,
    "max": _extreme("max", "max"),
    "min": _extreme("min", "min"),
    "map": mapped,
}
