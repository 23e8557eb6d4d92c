"""Functions on numbers, and on quantities where CEL can compute with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyverno.compiler.migration.expressions.functions.arguments import Translation, list_cel, made, unsupported
from pyverno.compiler.migration.expressions.value import INTEGER, NUMBER, Value
from pyverno.compiler.migration.schema import Presence, Schema, Shape
from pyverno.compiler.migration.text import Cel, CelType, Level, call, literal
from pyverno.kube.quantity import try_quantity
from pyverno.value import replace

if TYPE_CHECKING:
    from pyverno.compiler.migration.expressions.translator import Translator

__all__ = ["AMOUNT", "FUNCTIONS", "as_quantity"]

AMOUNT: Final = Schema(Shape.QUANTITY, Presence.REQUIRED)
"""The schema of a quantity that is computed; its CEL is a quantity or, for sums, a double, and no text."""

_LEVELS: Final = {"+": Level.SUM, "-": Level.SUM, "*": Level.PRODUCT}


def as_quantity(value: Value) -> Cel | None:
    """Return a value as a CEL quantity, None for a value that cannot be one."""
    if value.cel.type is CelType.QUANTITY:
        return value.cel
    if value.is_constant:
        written = isinstance(value.constant, str) and try_quantity(value.constant) is not None
        return call("quantity", value.cel, returns=CelType.QUANTITY) if written else None
    if value.shape is Shape.QUANTITY:
        inner = value.cel if value.cel.type is CelType.STRING else call("string", value.cel, returns=CelType.STRING)
        return call("quantity", inner, returns=CelType.QUANTITY)
    return None


def _arithmetic(name: str, operator: str, method: str) -> Translation:
    def translate(translator: Translator, left: Value, right: Value) -> Value:
        if left.shape is Shape.INT and right.shape is Shape.INT:
            level = _LEVELS[operator]
            tighter = Level(level + 1)
            text = f"{left.cel.within(level)} {operator} {right.cel.within(tighter)}"
            return made(Cel(text, CelType.INT, level), INTEGER, left, right)
        amounts = as_quantity(left), as_quantity(right)
        if method and amounts[0] is not None and amounts[1] is not None:
            return made(amounts[0].method(method, amounts[1], returns=CelType.QUANTITY), AMOUNT, left, right)
        raise unsupported(translator, name, "of other values than two whole numbers or two quantities")

    return translate


def total(translator: Translator, items: Value) -> Value:
    """`sum` of whole numbers is exact, of quantities exact below 2^53."""
    schema = translator.element_schema(items)
    if schema.shape is Shape.INT:
        return made(list_cel(translator, "sum", items).method("sum", returns=CelType.INT), INTEGER, items)
    if schema.shape is not Shape.QUANTITY:
        raise unsupported(translator, "sum", "of a list whose items no schema shows to be numbers or quantities")
    source = items
    if items.default is not None and items.default[1] in (["0"], [], [0]):
        source = items.default[0]
    sequence = source.sequence or translator.sequence_of(source)
    amount = as_quantity(sequence.element)
    assert amount is not None  # noqa: S101 - the shape is that of a quantity
    element = replace(sequence.element, cel=amount.method("asApproximateFloat", returns=CelType.DOUBLE))
    listed = replace(sequence, element=element).written(total=True)
    translator.names.note("sum-of-quantities", translator.path, "the sum is a floating point number: exact below 2^53")
    cel = listed.method("sum", returns=CelType.DOUBLE)
    return Value(cel, AMOUNT, fails=items.fails)


def absolute(translator: Translator, value: Value) -> Value:
    """`abs` is `math.abs`."""
    if not value.is_number:
        raise unsupported(translator, "abs", "of a value that no schema shows to be a number")
    return made(call("math.abs", value.cel), replace(value.schema, presence=Presence.REQUIRED), value)


def to_number(translator: Translator, value: Value) -> Value:
    """`to_number` of a number is the number; texts that are none would be null, which `double()` refuses."""
    if value.is_number:
        return value
    if not value.is_text:
        raise unsupported(translator, "to_number", "of a value that no schema shows to be a text or a number")
    is_number = value.cel.method("matches", _NUMBER, returns=CelType.BOOL)
    converted = call("double", value.cel, returns=CelType.DOUBLE)
    return replace(made(converted, NUMBER, value), present=is_number, fails=value.fails)


_NUMBER: Final = literal(r"(?i)^[-+]?(\d(_?\d)*\.?(\d(_?\d)*)?|\.\d(_?\d)*)(e[-+]?\d(_?\d)*)?$")

FUNCTIONS: Final[Mapping[str, Translation]] = {
    "add": _arithmetic("add", "+", "add"),
    "subtract": _arithmetic("subtract", "-", "sub"),
    "multiply": _arithmetic("multiply", "*", ""),
    "sum": total,
    "abs": absolute,
    "to_number": to_number,
}
