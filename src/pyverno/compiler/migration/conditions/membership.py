"""AnyIn, AllIn, AnyNotIn, AllNotIn, In, NotIn: whether items are among others, compared as texts.

Wildcards count in both directions for AnyIn, AllIn and In, and only on the side of the policy for the negated ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pyverno.compiler.migration.conditions.sides import Operands, fits_pattern, is_plain_name
from pyverno.compiler.migration.expressions.loops import Loop, Sequence
from pyverno.compiler.migration.expressions.value import Value, constant, of_reference
from pyverno.compiler.migration.expressions.wildcards import fits, fits_either_way
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    all_of,
    any_of,
    call,
    compare,
    element,
    literal,
)
from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, decode, go_text
from pyverno.kube.wildcard import has_wildcard, match
from pyverno.lang.pattern.operators import BOTH_SIDES, Sides, compile_operator
from pyverno.value import replace

__all__ = ["member"]

Test = Callable[[Value], Cel]

_RANGE: Final = re.compile(r"([0-9]+)(!?-)([0-9]+)")
_SCALARS: Final = (Shape.STRING, Shape.INT, Shape.BOOL, Shape.INT_OR_STRING, Shape.QUANTITY, Shape.TIME)


def member(operands: Operands, operator: str) -> Cel:
    """Return whether the key is in the value, by one of the operators."""
    key = operands.key
    if key.is_constant and operands.value.is_constant:
        sides = Sides(operands.is_key_static, operands.value_is_pattern) if "Not" in operator else BOTH_SIDES
        check = compile_operator(operator, operands.value.constant, sides)
        assert check is not None  # noqa: S101 - the operator is one of the table
        return TRUE if check(key.constant) else FALSE
    if key.is_constant and isinstance(key.constant, list):
        raise operands.refuse("constant-list", "a list of the policy against values of the request")
    if key.shape is Shape.ANY:
        raise operands.refuse(
            "no-schema",
            f"no schema tells whether `{key.cel.text}` is a list",
            "give the definition of the kind with --crd",
        )
    if key.shape in (Shape.MAP, Shape.OBJECT):
        return FALSE
    is_list = key.shape is Shape.LIST
    if is_list and key.counted is None and (found := _key_in_constants(operands, operator)) is not None:
        return found
    is_deprecated = operator in ("In", "NotIn") and is_list
    test = _test(operands, operator, is_list=is_list, is_deprecated=is_deprecated)
    if not is_list:
        if not (key.shape in _SCALARS or key.is_number):
            return FALSE
        return _scalar(key, test, is_negated="Not" in operator)
    sequence = key.sequence or _elements(key, operands)
    match operator:
        case "AnyIn":
            return sequence.exists(test)
        case "AllIn" | "In":
            found = sequence.all(test)
        case "AnyNotIn" | "NotIn":
            return sequence.exists(lambda item: test(item).not_())
        case _:
            found = sequence.exists(test).not_()
    return all_of([key.present, found])


def _key_in_constants(operands: Operands, operator: str) -> Cel | None:
    """Return a test of keys of a map by `in`, where the constants are plain: `'team' in object.metadata.labels`."""
    key, value = operands.key, operands.value
    sequence = key.sequence
    if sequence is None or not key.is_always or not value.is_constant or not isinstance(value.constant, list):
        return None
    loop = sequence.loops[-1]
    if len(sequence.loops) != 1 or not loop.is_map or loop.condition.text != "true":
        return None
    if sequence.element.cel.text != loop.variable or operator not in ("AnyIn", "AllNotIn"):
        return None
    if not all(isinstance(each, str) and not has_wildcard(each) for each in value.constant):
        return None
    found = any_of(compare(literal(each), "in", loop.source) for each in value.constant)
    return found if operator == "AnyIn" else found.not_()


def _elements(key: Value, operands: Operands) -> Sequence:
    variable = next(name for name in ("e", "f", "g", "h", "item", "entry") if name not in operands.names.taken)
    schema = key.default[0].schema.element if key.default is not None else key.schema.element
    return Sequence((Loop(variable, key.or_empty(), key.cel),), of_reference(element(variable, schema)))


def _scalar(key: Value, test: Test, *, is_negated: bool) -> Cel:
    if key.is_always:
        found = test(key)
        return found.not_() if is_negated else found
    if key.is_text and key.reference is not None and not is_negated:
        filled = replace(key, cel=key.or_value(literal("")), present=TRUE, optional=None, reference=key.reference)
        if test(constant("")).text == "false":
            return test(filled)
    found = test(replace(key, present=TRUE))
    return all_of([key.present, found.not_() if is_negated else found])


# ------------------------------------------------------------------------------------------------------- one item


def _test(operands: Operands, operator: str, *, is_list: bool, is_deprecated: bool) -> Test:
    """Return the test whether one item is among the values."""
    value = operands.value
    is_negated = "Not" in operator
    if value.is_constant:
        if not isinstance(value.constant, list):
            return _among_scalar(operands, operator, is_list=is_list)
        texts = [go_text(each) for each in value.constant]
        if is_deprecated and not all(isinstance(each, str) for each in value.constant):
            raise operands.refuse("deprecated-in", "In or NotIn of a list with items that are no texts")
        both_ways = not is_negated and not is_deprecated and not is_plain_name(operands.key)
        return _among(texts, both_ways=both_ways, wild=not is_deprecated)
    if value.parts is not None:
        return _among_parts(operands, value.parts, is_negated=is_negated)
    if value.shape is Shape.ANY:
        value = operands.known(value, Shape.LIST)
    if value.shape is Shape.LIST:
        return _among_list(operands, value, is_negated=is_negated, is_deprecated=is_deprecated)
    if value.shape is Shape.STRING and is_plain_name(value):
        return lambda item: all_of([value.present, compare(_as_text(item), "==", value.cel)])
    raise operands.refuse("computed-value", "a text of the request as the list of an operator")


def _among(texts: list[str], *, both_ways: bool, wild: bool = True) -> Test:
    plain = [text for text in texts if not wild or not has_wildcard(text)]
    patterns = [text for text in texts if wild and has_wildcard(text)]

    def test(item: Value) -> Cel:
        if item.is_constant:
            text = go_text(item.constant)
            matches = text in plain or any(match(pattern, text) for pattern in patterns)
            matches = matches or (both_ways and has_wildcard(text) and any(match(text, each) for each in texts))
            return TRUE if matches else FALSE
        if item.is_number:
            return _among_numbers(item, plain, patterns)
        if item.shape is Shape.BOOL:
            return any_of([*([item.cel] if "true" in plain else []), *([item.cel.not_()] if "false" in plain else [])])
        cel = _as_text(item)
        parts = []
        if len(plain) == 1:
            parts.append(compare(cel, "==", literal(plain[0])))
        elif plain:
            parts.append(compare(cel, "in", literal([*plain])))
        parts += [fits(cel, pattern) for pattern in patterns]
        if both_ways and not is_plain_name(item) and item.is_text and item.shape is not Shape.QUANTITY:
            parts.append(fits_either_way(cel, texts))
        return any_of(parts)

    return test


def _among_numbers(item: Value, plain: list[str], patterns: list[str]) -> Cel:
    numbers: list[JSON] = [int(text) for text in plain if re.fullmatch(r"0|-?[1-9][0-9]{0,15}", text)]
    parts = []
    if len(numbers) == 1:
        parts.append(compare(item.cel, "==", literal(numbers[0])))
    elif numbers:
        parts.append(compare(item.cel, "in", literal(numbers)))
    parts += [fits(call("string", item.cel, returns=CelType.STRING), pattern) for pattern in patterns]
    return any_of(parts)


def _as_text(item: Value) -> Cel:
    if item.is_text or item.shape is Shape.ANY:
        return item.cel
    return call("string", item.cel, returns=CelType.STRING)


def _among_scalar(operands: Operands, operator: str, *, is_list: bool) -> Test:
    """Return the test against a single value of the policy: a wildcard, a range, or the text of a JSON list."""
    value = operands.value.constant
    is_negated = "Not" in operator
    if not isinstance(value, str):
        if is_list and operator in ("AnyIn", "AnyNotIn") and isinstance(value, bool | int | float):
            return _among([go_text(value)], both_ways=not is_negated)
        if is_list or is_negated:
            raise operands.refuse("single-value", "a single value where the operator takes a list", "write a list")
        return lambda _item: FALSE
    found = _RANGE.fullmatch(value)
    if (
        found is not None
        and found[2] == "-"
        and (operands.key.is_number or is_list)
        and operator not in ("In", "NotIn")
    ):
        return _within(operands, int(found[1]), int(found[3]))
    if found is not None:
        raise operands.refuse("range", "a range against something that no schema shows to be a number")
    try:
        decoded = decode(value)
    except DocumentError:
        return _among([value], both_ways=not is_negated)
    if isinstance(decoded, list) and all(isinstance(each, str) for each in decoded):
        if any(has_wildcard(each) for each in decoded):
            raise operands.refuse("json-text", "a JSON list with wildcards as text", "write a list")
        return _among([*decoded], both_ways=not is_negated)
    raise operands.refuse("json-text", f"the text `{value}` is JSON but no list of texts", "write a list")


def _within(operands: Operands, least: int, most: int) -> Test:
    def test(item: Value) -> Cel:
        if not item.is_number:
            raise operands.refuse("range", "a range against something that no schema shows to be a number")
        return all_of([compare(item.cel, ">=", literal(least)), compare(item.cel, "<=", literal(most))])

    return test


def _among_parts(operands: Operands, parts: tuple[Value, ...], *, is_negated: bool) -> Test:
    """Return the test against a list some of whose items are variables."""
    constants = [go_text(part.constant) for part in parts if part.is_constant]
    others = [part for part in parts if not part.is_constant]
    fixed = _among(constants, both_ways=not is_negated)

    def test(item: Value) -> Cel:
        found = [fixed(item)]
        for other in others:
            if not other.is_text and other.shape is not Shape.INT:
                raise operands.refuse("computed-value", "a list with a computed item that is no text")
            if not is_negated and not is_plain_name(other):
                raise operands.refuse("computed-wildcard", f"`{other.cel.text}` can hold a wildcard")
            found.append(all_of([other.present, compare(_as_text(item), "==", _as_text(other))]))
        return any_of(found)

    return test


def _among_list(operands: Operands, value: Value, *, is_negated: bool, is_deprecated: bool) -> Test:
    """Return the test against a list that is computed."""
    if not value.is_always:
        raise operands.refuse(
            "list-can-be-null", f"`{value.cel.text}` can be null, which holds nothing", "write a default: || `[]`"
        )
    listed = value.or_empty()
    is_exact = is_deprecated or (is_negated and not operands.value_is_pattern)
    is_key_plain = operands.key.is_constant and not has_wildcard(go_text(operands.key.constant))

    def test(item: Value) -> Cel:
        cel = item.cel if item.is_constant or item.is_text else _as_text(item)
        if not is_exact and not is_plain_name(value) and not is_plain_name(_item_of(value)):
            variable = "option"
            tests = [compare(cel, "==", Cel(variable)), fits_pattern(cel, Cel(variable))]
            if not is_negated and not is_plain_name(item) and not is_key_plain:
                tests.append(fits_pattern(Cel(variable), cel))
            return listed.macro("exists", variable, any_of(tests))
        if value.sequence is not None and (found := value.sequence.includes(cel)) is not None:
            return found
        return compare(cel, "in", listed)

    return test


def _item_of(value: Value) -> Value:
    if value.sequence is not None:
        return value.sequence.element
    return value.default[0] if value.default is not None else value
