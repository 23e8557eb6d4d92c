"""Kubernetes' library of resource quantities."""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError, ValueSyntaxError
from pyverno.kube.quantity import Quantity, parse_quantity, try_quantity
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.libraries.costs import by_size
from pyverno.lang.cel.types import opaque
from pyverno.lang.cel.values import Value
from pyverno.lang.cel.work import instant, reading

__all__ = ["QUANTITIES"]


@function("quantity", "(string) -> kubernetes.Quantity", cost=by_size(), work=reading(per_step=32))
def quantity(text: str) -> Quantity:
    """The quantity that a text names.

    CEL: quantity('1Gi').isGreaterThan(quantity('512Mi')) ⇒ true
    """
    try:
        return parse_quantity(text)
    except ValueSyntaxError as error:
        # its texts quote nothing
        raise EvaluationError(error.message) from None


@function("isQuantity", "(string) -> bool", cost=by_size(), work=reading(per_step=32))
def is_quantity(text: str) -> bool:
    """Whether a text names a quantity.

    CEL: isQuantity('1.5GiB') ⇒ false
    """
    return try_quantity(text) is not None


@function("sign", "(kubernetes.Quantity) -> int", work=instant)
def quantity_sign(value: Quantity) -> int:
    """-1, 0 or 1.

    CEL: sign(quantity('-5')) ⇒ -1
    """
    return value.sign()


@function("isGreaterThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", work=instant)
def quantity_is_greater_than(value: Quantity, other: Quantity) -> bool:
    """Whether a quantity is greater than another.

    CEL: quantity('2').isGreaterThan(quantity('1500m')) ⇒ true
    """
    return value.compare(other) > 0


@function("isLessThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool", work=instant)
def quantity_is_less_than(value: Quantity, other: Quantity) -> bool:
    """Whether a quantity is less than another.

    CEL: quantity('1').isLessThan(quantity('1500m')) ⇒ true
    """
    return value.compare(other) < 0


@function("compareTo", "kubernetes.Quantity.(kubernetes.Quantity) -> int", work=instant)
def quantity_compare_to(value: Quantity, other: Quantity) -> int:
    """-1, 0 or 1 for less, equal and greater.

    CEL: quantity('1k').compareTo(quantity('1000')) ⇒ 0
    """
    return value.compare(other)


@function("asApproximateFloat", "kubernetes.Quantity.() -> double", work=instant)
def as_approximate_float(value: Quantity) -> float:
    """The value as double, possibly rounded.

    CEL: quantity('1500m').asApproximateFloat() ⇒ 1.5
    """
    return value.approximate()


@function("isInteger", "kubernetes.Quantity.() -> bool", work=instant)
def is_integer(value: Quantity) -> bool:
    """Whether `asInteger` works.

    CEL: quantity('1500m').isInteger() ⇒ false
    """
    return value.whole() is not None


@function("asInteger", "kubernetes.Quantity.() -> int", work=instant)
def as_integer(value: Quantity) -> int:
    """The value as int; an error when it is not whole or too large.

    CEL: quantity('2k').asInteger() ⇒ 2000
    """
    whole = value.whole()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _as_quantity(value: Value) -> Quantity:
    return value if isinstance(value, Quantity) else parse_quantity(str(value))


@function("add", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
          "kubernetes.Quantity.(int) -> kubernetes.Quantity", work=instant)  # fmt: skip
def quantity_add(value: Quantity, other: Value) -> Quantity:
    """The sum with a quantity or int.

    CEL: quantity('1Gi').add(1) == quantity('1073741825') ⇒ true
    """
    return value.add(_as_quantity(other))


@function("sub", "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
          "kubernetes.Quantity.(int) -> kubernetes.Quantity", work=instant)  # fmt: skip
def quantity_sub(value: Quantity, other: Value) -> Quantity:
    """The difference to a quantity or int.

    CEL: quantity('1k').sub(quantity('1')) == quantity('999') ⇒ true
    """
    return value.subtract(_as_quantity(other))


QUANTITIES: Final = Library(
    "kubernetes.quantity",
    (
        quantity, is_quantity, quantity_sign, quantity_is_greater_than, quantity_is_less_than, quantity_compare_to,
        as_approximate_float, is_integer, as_integer, quantity_add, quantity_sub,
    ),
    types=(opaque("kubernetes.Quantity"),),
    introduced="1.28",
    doc="Quantities such as 500m or 1Gi.",
)  # fmt: skip
