"""Equals and NotEquals: texts of the policy are wildcards, durations and quantities; a null key satisfies neither."""

from __future__ import annotations

import re
from typing import Final

from pyverno.compiler.migration.conditions.sides import Operands, fits_pattern, is_duration, is_plain_name
from pyverno.compiler.migration.expressions import translate
from pyverno.compiler.migration.expressions.functions.numbers import as_quantity
from pyverno.compiler.migration.expressions.translator import counted_against
from pyverno.compiler.migration.expressions.value import Value, constant, equal
from pyverno.compiler.migration.expressions.wildcards import fits
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
    ternary,
)
from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON
from pyverno.kube.wildcard import has_wildcard
from pyverno.lang.pattern.operators import compile_operator
from pyverno.lang.pattern.operators_values import duration_of, integer_of, quantity_of

__all__ = ["equals", "not_equals"]

_MAYBE_QUANTITY: Final = re.compile(r"[-+.0-9eEimnukMKGTP*?]*")
_COLLECTIONS: Final = (Shape.LIST, Shape.MAP, Shape.OBJECT)
_TEXTS: Final = (Shape.STRING, Shape.TIME)


def equals(operands: Operands) -> Cel:
    """Return whether the key equals the value."""
    return _equals(operands, operands.key, operands.value, is_negated=False)


def not_equals(operands: Operands) -> Cel:
    """Return whether the key is there and differs from the value."""
    key, value = operands.key, operands.value
    if value.is_null:
        return key.present
    if key.is_truth_only:
        raise operands.refuse("truth-only", "the key can be null or empty where CEL has false")
    simple = _simple_difference(key, value)
    if simple is not None:
        return simple
    return all_of([key.present, _equals(operands, key, value, is_negated=True).not_()])


def _simple_difference(key: Value, value: Value) -> Cel | None:
    """Return `x.orValue(c) != c`, where that is all there is to it."""
    if not value.is_constant or not isinstance(value.constant, str) or key.shape not in _TEXTS:
        return None
    text = value.constant
    if key.is_always or has_wildcard(text) or duration_of(text) is not None or quantity_of(text) is not None:
        return None
    if key.reference is None or key.guard.text != "true":
        return None
    return compare(key.or_value(value.cel), "!=", value.cel)


def _equals(operands: Operands, key: Value, value: Value, *, is_negated: bool) -> Cel:
    if value.is_null:
        return FALSE
    if key.is_constant and value.is_constant:
        check = compile_operator("NotEquals" if is_negated else "Equals", value.constant)
        assert check is not None  # noqa: S101 - the operator exists
        met = check(key.constant)
        return TRUE if met is not is_negated else FALSE
    if value.is_constant:
        return _equals_constant(operands, key, value)
    return _equals_value(operands, key, value, is_negated=is_negated)


def _equals_constant(operands: Operands, key: Value, value: Value) -> Cel:
    given = value.constant
    match given:
        case bool():
            if key.shape not in (Shape.BOOL, Shape.ANY):
                return FALSE
            if key.is_truth_only and not given:
                raise operands.refuse("truth-only", "the key can be null or empty where CEL has false")
            return equal(key, value)
        case str():
            return _equals_text(operands, key, value, given)
        case int() | float():
            return _equals_number(operands, key, value, given)
        case _:
            if key.shape not in (*_COLLECTIONS, Shape.ANY):
                return FALSE
            return equal(key, value)


def _equals_number(operands: Operands, key: Value, value: Value, given: float) -> Cel:
    counted = counted_against(key, value, "==")
    if counted is not None:
        return counted
    if key.shape is Shape.ANY:
        key = operands.known(key, Shape.INT)
    if key.is_number or key.shape is Shape.INT_OR_STRING:
        return equal(key, value)
    if key.shape is Shape.STRING:
        # Kyverno: a text that is a duration equals a number of seconds
        seconds = call("duration", literal(f"{int(given)}s"))
        return key.when_present(lambda cel: all_of([is_duration(cel), compare(call("duration", cel), "==", seconds)]))
    if key.shape is Shape.QUANTITY:
        raise operands.refuse("quantity-and-number", "a quantity and a number", "write the value as a text: `'1'`")
    return FALSE


def _equals_text(operands: Operands, key: Value, value: Value, text: str) -> Cel:
    if key.default is not None and key.default[0].shape in _COLLECTIONS and isinstance(key.default[1], str):
        return equal(key, value)
    if key.shape in _COLLECTIONS or key.shape is Shape.BOOL:
        return FALSE
    if key.is_number:
        number = integer_of(text) if key.shape is Shape.INT else parse_float(text)
        if number is None:
            return FALSE
        return key.when_present(lambda cel: compare(cel, "==", literal(number)))
    if key.shape is Shape.QUANTITY or key.cel.type is CelType.QUANTITY:
        return _equals_amount(key, text)
    if key.shape is Shape.ANY:
        key = operands.known(key, Shape.STRING)
    if key.shape is Shape.INT_OR_STRING:
        return _equals_int_or_text(operands, key, text)
    if _is_mere(text):
        return equal(key, value)
    return key.when_present(lambda cel: _text_test(cel, text, key))


def _is_mere(text: str) -> bool:
    return not has_wildcard(text) and duration_of(text) is None and quantity_of(text) is None


def _text_test(cel: Cel, text: str, key: Value) -> Cel:
    """Return the test of a text that is there: as durations, else as quantities, else as a wildcard."""
    duration = duration_of(text) if text != "0" else None
    quantity = quantity_of(text)
    same_duration = all_of([is_duration(cel), compare(call("duration", cel), "==", call("duration", literal(text)))])
    if quantity is not None:
        is_quantity = call("isQuantity", cel, returns=CelType.BOOL)
        amount = call("quantity", literal(text))
        same = compare(call("quantity", cel).method("compareTo", amount), "==", literal(0))
        found = all_of([is_quantity, same])
        return found if duration is None else ternary(is_duration(cel), same_duration, found)
    if duration is not None:
        return any_of([compare(cel, "==", literal(text)), same_duration])
    matches = fits(cel, text)
    if _MAYBE_QUANTITY.fullmatch(text) is None:
        return matches
    if text.strip("*") in ("", "?") and key.schema.presence is Presence.NONZERO and text.strip("*") == "?":
        matches = TRUE
    return all_of([matches, call("isQuantity", cel, returns=CelType.BOOL).not_()])


def _equals_amount(key: Value, text: str) -> Cel:
    if quantity_of(text) is None:
        return equal(key, constant(text)) if text == "" else FALSE
    amount = call("quantity", literal(text), returns=CelType.QUANTITY)
    if key.cel.type is CelType.DOUBLE:
        return compare(key.cel, "==", amount.method("asApproximateFloat", returns=CelType.DOUBLE))

    def same(_cel: Cel) -> Cel:
        own = as_quantity(key)
        assert own is not None  # noqa: S101 - its shape is that of a quantity
        return compare(own.method("compareTo", amount), "==", literal(0))

    if key.default is not None and key.default[1] == "":
        source = key.default[0]
        own = as_quantity(source)
        assert own is not None  # noqa: S101 - its shape is that of a quantity
        return all_of([source.present, compare(own.method("compareTo", amount), "==", literal(0))])
    return key.when_present(same)


def _equals_int_or_text(operands: Operands, key: Value, text: str) -> Cel:
    number: JSON = integer_of(text)
    if has_wildcard(text) or duration_of(text) is not None or (number is None and quantity_of(text) is not None):
        raise operands.refuse("int-or-string", "a wildcard, quantity or duration against a number or a text")
    if number is None:
        return equal(key, constant(text))

    def same(cel: Cel) -> Cel:
        is_text = compare(call("type", cel), "==", Cel("string"))
        return any_of([compare(cel, "==", literal(number)), all_of([is_text, _text_test(cel, text, key)])])

    return key.when_present(same)


def _equals_value(operands: Operands, key: Value, value: Value, *, is_negated: bool) -> Cel:
    """Return whether two values of the request are equal."""
    if key.shape is Shape.ANY and value.shape is not Shape.ANY:
        key = operands.known(key, value.shape)
    if value.shape is Shape.ANY and key.shape is not Shape.ANY:
        value = operands.known(value, key.shape)
    if value.is_truth_only or key.is_truth_only:
        raise operands.refuse("truth-only", "a side can be null or empty where CEL has false")
    amounts = as_quantity(key), as_quantity(value)
    present = all_of([value.present, key.present] if not is_negated else [value.present])
    if amounts[0] is not None and amounts[1] is not None and Shape.QUANTITY in (key.shape, value.shape):
        return all_of([present, compare(amounts[0].method("compareTo", amounts[1]), "==", literal(0))])
    if key.shape in (Shape.QUANTITY, Shape.INT_OR_STRING) or value.shape in (Shape.QUANTITY, Shape.INT_OR_STRING):
        raise operands.refuse("mixed-types", "a quantity, or a number that can be a text, against another type")
    if (key.shape in _COLLECTIONS) is not (value.shape in _COLLECTIONS):
        return FALSE
    same = compare(key.cel, "==", value.cel)
    if key.shape is Shape.STRING and value.shape is Shape.STRING:
        if operands.own_pattern and (operands.value_is_pattern or not is_negated):
            return all_of([present, _fits_own(operands, key, value)])
        _note_texts(operands, value, is_negated=is_negated)
    return all_of([present, same]) if present.text == "true" else _same(key, value, same, is_negated=is_negated)


def _fits_own(operands: Operands, key: Value, value: Value) -> Cel:
    """Return whether a text fits wildcards of the policy beside a variable, as in `{{ request.namespace }}/*`."""
    prefix = operands.own_pattern.removesuffix("*")
    if prefix == operands.own_pattern or has_wildcard(prefix):
        return fits_pattern(key.cel, value.cel)
    found = translate(prefix, operands.names, operands.path)
    return key.cel.method("startsWith", found.cel, returns=CelType.BOOL)


def _same(key: Value, value: Value, same: Cel, *, is_negated: bool) -> Cel:
    if key.is_always or value.is_always or key.optional is None or value.optional is None:
        return all_of([value.present, *([] if is_negated else [key.present]), same])
    both = compare(key.optional, "==", value.optional)
    return both if is_negated else all_of([key.present, both])


def _note_texts(operands: Operands, value: Value, *, is_negated: bool) -> None:
    is_pattern = not is_negated or operands.value_is_pattern
    if is_pattern and not is_plain_name(value) and not value.is_constant:
        raise operands.refuse(
            "computed-wildcard",
            f"`{value.cel.text}` can hold a wildcard, which the rule would match",
            "compare the texts with == in CEL if a wildcard is not meant",
        )
    operands.names.note(
        "compared-as-text",
        operands.path,
        "texts are compared as they are; the old rule takes equal amounts for equal (`60s` and `1m`, `1000m` and `1`)",
    )
