"""GreaterThan, LessThan and their kin, and the deprecated Duration operators; incomparable values give false."""

from __future__ import annotations

from typing import Final

from pyverno.compiler.migration.conditions.sides import Operands, is_duration, is_number
from pyverno.compiler.migration.expressions.functions.numbers import as_quantity
from pyverno.compiler.migration.expressions.translator import counted_against
from pyverno.compiler.migration.expressions.value import Value
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import FALSE, TRUE, Cel, CelType, all_of, any_of, call, compare, literal, ternary
from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON
from pyverno.kube.semver import try_version
from pyverno.lang.pattern.operators import compile_operator
from pyverno.lang.pattern.operators_values import duration_of, quantity_of

__all__ = ["duration_order", "order"]

_NANOSECONDS: Final = 1_000_000_000
_NAMES: Final = {">": "GreaterThan", ">=": "GreaterThanOrEquals", "<": "LessThan", "<=": "LessThanOrEquals"}
_MIRRORED: Final = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def order(operands: Operands, operator: str) -> Cel:
    """Return a comparison: of numbers, or of texts as durations, quantities, numbers or versions."""
    key, value = operands.key, operands.value
    if key.is_constant and value.is_constant:
        return _constants(operands, _NAMES[operator])
    if value.is_null:
        return FALSE
    if value.is_constant:
        given = value.constant
        if isinstance(given, bool | list | dict):
            return FALSE
        counted = counted_against(key, value, operator)
        if counted is not None:
            return counted
        return (
            _against_text(operands, key, operator, given)
            if isinstance(given, str)
            else _against_number(operands, key, operator, given)
        )
    if key.is_constant and not isinstance(key.constant, str):
        return _mirrored(operands, operator)
    return _against_value(operands, operator)


def _constants(operands: Operands, name: str) -> Cel:
    check = compile_operator(name, operands.value.constant)
    assert check is not None  # noqa: S101 - the operator is one of the table
    return TRUE if check(operands.key.constant) else FALSE


def _against_number(operands: Operands, key: Value, operator: str, number: float) -> Cel:
    if key.shape is Shape.ANY:
        key = operands.known(key, Shape.INT)
    limit = literal(number)
    if key.is_number:
        return key.when_present(lambda cel: compare(cel, operator, limit))
    if key.shape is Shape.INT_OR_STRING:
        return key.when_present(
            lambda cel: all_of([compare(call("type", cel), "==", Cel("int")), compare(cel, operator, limit)])
        )
    if key.shape is Shape.STRING:
        seconds = call("duration", literal(f"{int(number)}s"))
        return key.when_present(
            lambda cel: ternary(
                is_duration(cel),
                compare(call("duration", cel), operator, seconds),
                all_of([is_number(cel), compare(_double(cel), operator, literal(float(number)))]),
            )
        )
    if key.shape is Shape.QUANTITY:
        raise operands.refuse("quantity-and-number", "a quantity and a number", "write the value as a text: `'1'`")
    return FALSE


def _against_text(operands: Operands, key: Value, operator: str, text: str) -> Cel:
    if key.shape is Shape.ANY:
        key = operands.known(key, Shape.STRING)
    duration = duration_of(text) if text != "0" else None
    if key.is_number:
        if duration is not None:
            seconds: JSON = duration / _NANOSECONDS if duration % _NANOSECONDS else duration // _NANOSECONDS
            return key.when_present(lambda cel: compare(cel, operator, literal(seconds)))
        number = parse_float(text)
        if number is None:
            return FALSE
        whole = int(number) if number.is_integer() else number
        return key.when_present(lambda cel: compare(cel, operator, literal(whole)))
    if key.shape is Shape.QUANTITY:
        return _amounts(operands, key, operator, text)
    if key.shape is not Shape.STRING:
        if key.shape in (Shape.LIST, Shape.MAP, Shape.OBJECT, Shape.BOOL):
            return FALSE
        raise operands.refuse("mixed-types", f"the text `{text}` against a value that can be a number or a text")
    return key.when_present(lambda cel: _texts(operands, cel, operator, text))


def _texts(operands: Operands, cel: Cel, operator: str, text: str) -> Cel:
    """Return the comparison of a text that is there with a text of the policy."""
    duration = duration_of(text) if text != "0" else None
    is_amount = quantity_of(text) is not None
    by_duration = compare(call("duration", cel), operator, call("duration", literal(text)))
    by_amount = all_of(
        [call("isQuantity", cel, returns=CelType.BOOL), _compared(call("quantity", cel), operator, text)]
    )
    if duration is not None and is_amount:
        return ternary(is_duration(cel), by_duration, by_amount)
    if duration is not None:
        # Kyverno: a number is one of seconds beside a duration
        by_number = all_of([is_number(cel), compare(_double(cel), operator, literal(duration / _NANOSECONDS))])
        return ternary(is_duration(cel), by_duration, by_number)
    if is_amount:
        return by_amount
    if try_version(text) is not None:
        is_version = call("isSemver", cel, returns=CelType.BOOL)
        ordered = call("semver", cel).method("compareTo", call("semver", literal(text)))
        return all_of([is_version, compare(ordered, operator, literal(0))])
    if parse_float(text) is not None:
        raise operands.refuse("odd-number", f"the number `{text}`", "write it as a decimal number")
    return FALSE


def _amounts(operands: Operands, key: Value, operator: str, text: str) -> Cel:
    if quantity_of(text) is None:
        if duration_of(text) is not None:
            raise operands.refuse("quantity-and-duration", "a quantity against a duration", "mend the rule")
        return FALSE
    if key.cel.type is CelType.DOUBLE:
        limit = call("quantity", literal(text)).method("asApproximateFloat", returns=CelType.DOUBLE)
        return compare(key.cel, operator, limit)
    own = as_quantity(key)
    assert own is not None  # noqa: S101 - its shape is that of a quantity
    if key.default is not None and key.default[1] == "":
        source = key.default[0]
        amount = as_quantity(source)
        assert amount is not None  # noqa: S101 - its shape is that of a quantity
        return all_of([source.present, _compared(amount, operator, text)])
    return all_of([key.present, _compared(own, operator, text)])


def _compared(amount: Cel, operator: str, text: str) -> Cel:
    return compare(amount.method("compareTo", call("quantity", literal(text))), operator, literal(0))


def _against_value(operands: Operands, operator: str) -> Cel:
    key, value = operands.key, operands.value
    if key.shape is Shape.ANY and value.shape is not Shape.ANY:
        key = operands.known(key, value.shape)
    if value.shape is Shape.ANY and key.shape is not Shape.ANY:
        value = operands.known(value, key.shape)
    present = all_of([key.present, value.present])
    if key.is_number and value.is_number:
        return all_of([present, compare(key.cel, operator, value.cel)])
    left, right = as_quantity(key), as_quantity(value)
    if left is not None and right is not None:
        return all_of([present, compare(left.method("compareTo", right), operator, literal(0))])
    raise operands.refuse("mixed-types", "two values of the request that no schema shows to be numbers or quantities")


def _mirrored(operands: Operands, operator: str) -> Cel:
    """Return the comparison of a number of the policy with a value of the request."""
    value = operands.value
    if value.shape is Shape.ANY:
        value = operands.known(value, Shape.INT)
    if not value.is_number or isinstance(operands.key.constant, bool):
        raise operands.refuse("mixed-types", "a number of the policy against a value that no schema shows to be one")
    return value.when_present(lambda cel: compare(cel, _MIRRORED[operator], operands.key.cel))


def duration_order(operands: Operands, operator: str) -> Cel:
    """Return a comparison of durations, in which a number is one of seconds."""
    key, value = operands.key, operands.value
    if key.is_constant and value.is_constant:
        return _constants(operands, f"Duration{_NAMES[operator]}")
    if not value.is_constant:
        raise operands.refuse("computed-value", "a duration of the request as the limit")
    given = value.constant
    if isinstance(given, str):
        limit = duration_of(given)
    else:
        is_number_given = isinstance(given, int | float) and not isinstance(given, bool)
        limit = int(given) * _NANOSECONDS if is_number_given else None
    if limit is None:
        return FALSE
    if key.shape is Shape.ANY:
        key = operands.known(key, Shape.STRING)
    if key.is_number:
        whole = literal(limit // _NANOSECONDS if limit % _NANOSECONDS == 0 else limit / _NANOSECONDS)
        return key.when_present(lambda cel: compare(cel, operator, whole))
    if not key.is_text:
        return FALSE
    written = given if isinstance(given, str) else f"{int(given)}s"
    zero = _holds(operator, 0, limit)

    def test(cel: Cel) -> Cel:
        ordered = compare(call("duration", cel), operator, call("duration", literal(written)))
        found = all_of([is_duration(cel), ordered])
        return any_of([compare(cel, "==", literal("0")), found]) if zero else found

    return key.when_present(test)


def _holds(operator: str, left: int, right: int) -> bool:
    return {">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[operator]


def _double(cel: Cel) -> Cel:
    return call("double", cel, returns=CelType.DOUBLE)
