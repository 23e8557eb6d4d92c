"""Optional types: values that may be absent, and the functions that make and open them."""

from __future__ import annotations

from typing import Final

from pyverno.errors import EvaluationError
from pyverno.lang.cel.declarations import Library, function
from pyverno.lang.cel.runtime import access
from pyverno.lang.cel.syntax.macros import OPTIONAL_MACROS
from pyverno.lang.cel.types import DYN, optional_of
from pyverno.lang.cel.values import NONE, Optional, Value, is_zero, no_such_overload
from pyverno.lang.cel.work import instant, walking

__all__ = ["OPTIONALS"]


@function("optional.of", "(V) -> optional(V)", work=instant)
def of(value: Value) -> Optional:
    """An optional that holds a value.

    CEL: optional.of(1).value() ⇒ 1
    """
    return Optional(value)


@function("optional.ofNonZeroValue", "(V) -> optional(V)", work=instant)
def of_non_zero_value(value: Value) -> Optional:
    """An optional that holds a value unless it is the zero of its type (null, false, 0, empty).

    CEL: optional.ofNonZeroValue('').hasValue() ⇒ false
    """
    return NONE if is_zero(value) else Optional(value)


@function("optional.none", "() -> optional(V)", work=instant)
def none() -> Optional:
    """An optional without value.

    CEL: optional.none().hasValue() ⇒ false
    """
    return NONE


@function("value", "optional(V).() -> V", work=instant)
def value_of(holder: Optional) -> Value:
    """The value inside; an error when there is none.

    CEL: optional.of('a').value() ⇒ 'a'
    """
    if not holder.present:
        raise EvaluationError("optional.none() dereference")
    return holder.value


@function("hasValue", "optional(V).() -> bool", work=instant)
def has_value(holder: Optional) -> bool:
    """Whether there is a value.

    CEL: optional.of(0).hasValue() ⇒ true
    """
    return holder.present


@function("or", "optional(V).(optional(V)) -> optional(V)", work=instant)
def or_(holder: Optional, other: Optional) -> Optional:
    """The optional itself when it holds a value, otherwise the other one.

    CEL: optional.none().or(optional.of(2)).value() ⇒ 2
    """
    return holder if holder.present else other


@function("orValue", "optional(V).(V) -> V", work=instant)
def or_value(holder: Optional, other: Value) -> Value:
    """The value inside, or a default.

    CEL: optional.none().orValue(3) ⇒ 3
    """
    return holder.value if holder.present else other


@function(
    "_[?_]",
    "(list(A), int) -> optional(A)",
    "(optional(list(A)), int) -> optional(A)",
    "(map(A, B), A) -> optional(B)",
    "(optional(map(A, B)), A) -> optional(B)",
    work=instant,
)
def optional_index(value: Value, key: Value) -> Optional:
    """The element or entry, when there is one.

    CEL: [1][?5].hasValue() ⇒ false
    """
    return access.optional_index(value, key)


@function("_[_]", "(optional(list(A)), int) -> optional(A)", "(optional(map(A, B)), A) -> optional(B)", work=instant)
def index(value: Value, key: Value) -> Value:
    """The element or entry of what an optional holds.

    CEL: optional.of([7])[0].value() ⇒ 7
    """
    return access.index(value, key)


@function("first", "list(A).() -> optional(A)", since=(2,), work=instant)
def first(items: Value) -> Optional:
    """The first element, when there is one.

    CEL: [].first().hasValue() ⇒ false
    """
    return Optional(items[0]) if items else NONE


@function("last", "list(A).() -> optional(A)", since=(2,), work=instant)
def last(items: Value) -> Optional:
    """The last element, when there is one.

    CEL: [1, 2].last().value() ⇒ 2
    """
    return Optional(items[-1]) if items else NONE


@function("optional.unwrap", "(list(optional(A))) -> list(A)", since=(2,), work=walking(per=8))
def unwrap(items: Value) -> list[Value]:
    """The values of a list of optionals, without the empty ones.

    CEL: optional.unwrap([optional.of(1), optional.none()]) ⇒ [1]
    """
    return _unwrap(items)


@function("unwrapOpt", "list(optional(A)).() -> list(A)", since=(2,), work=walking(per=8))
def unwrap_opt(items: Value) -> list[Value]:
    """The values of a list of optionals, without the empty ones.

    CEL: [optional.of(1), optional.none()].unwrapOpt() ⇒ [1]
    """
    return _unwrap(items)


def _unwrap(items: Value) -> list[Value]:
    if not all(isinstance(item, Optional) for item in items):
        raise no_such_overload()
    return [item.value for item in items if item.present]


OPTIONALS: Final = Library(
    "optional",
    (
        of, of_non_zero_value, none, value_of, has_value, or_, or_value, optional_index, index,
        first, last, unwrap, unwrap_opt,
    ),
    macros=OPTIONAL_MACROS,
    types=(optional_of(DYN),),
    introduced="1.28",
    doc="Values that may be absent.",
)  # fmt: skip
