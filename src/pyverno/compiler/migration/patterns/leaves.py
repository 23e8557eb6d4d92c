"""Leaves of patterns as CEL: `true`, `5`, `a | b`, `>5`, `<=1Gi`, `!x`, `1-10`, wildcards, by the type of the field.

What a leaf decides about a missing value, and about each of the few values of a boolean, is taken from the leaf of the
engine itself. A text is compared as a duration, then as a quantity, then as a text, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pyverno.compiler.migration.outcome import UnconvertibleError
from pyverno.compiler.migration.patterns.wildcards import text_matches
from pyverno.compiler.migration.schema import Shape
from pyverno.compiler.migration.text import (
    FALSE,
    TRUE,
    Cel,
    CelType,
    Reference,
    all_of,
    any_of,
    call,
    compare,
    literal,
    ternary,
)
from pyverno.kube.json import JSON
from pyverno.kube.quantity import try_quantity
from pyverno.kube.time.duration import try_duration
from pyverno.lang.pattern.anchors import GO_SPACE
from pyverno.lang.pattern.leaf import Operator, compile_leaf, split_operator
from pyverno.lang.template.references import find_references
from pyverno.lazyregex import regex
from pyverno.value import dataclass

__all__ = ["LeafTest", "leaf_test"]

_DURATION: Final = r"^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$"
_RANGE: Final = regex(r"([-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+)(!?)-([-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+)")
_SIGNS: Final = {
    Operator.EQUAL: "==",
    Operator.NOT_EQUAL: "!=",
    Operator.MORE: ">",
    Operator.LESS: "<",
    Operator.MORE_EQUAL: ">=",
    Operator.LESS_EQUAL: "<=",
}
_NO_SCHEMA: Final = "give the CustomResourceDefinition of the kind with --crd, or let --unsafe take the pattern's word"


@dataclass(frozen=True, slots=True)
class LeafTest:
    """A leaf as a function of a value that is there and not null, and its verdict on one that is missing or null."""

    test: Callable[[Cel], Cel]
    accepts_missing: bool
    samples: tuple[JSON, ...] = ()
    accepts: Callable[[JSON], bool] = bool

    def on(self, reference: Reference) -> Cel:
        """Return the test of a field that can be missing."""
        if not reference.can_be_missing:
            return self._with_null(reference, self.test(reference.value()))
        for sample in self.samples:
            # a default that the test judges like a missing value spares a guard
            if self.accepts(sample) is self.accepts_missing and not reference.can_be_null:
                value = reference.or_value(literal(sample))
                found = self.test(value)
                if found.text not in ("true", "false"):
                    return found
        found = self.test(reference.value())
        present = reference.is_set()
        if self.accepts_missing:
            return any_of([present.not_(), found])
        return all_of([present, found])

    def _with_null(self, reference: Reference, found: Cel) -> Cel:
        if not reference.can_be_null:
            return found
        if self.accepts_missing:
            return any_of([compare(reference.value(), "==", literal(None)), found])
        return all_of([compare(reference.value(), "!=", literal(None)), found])


def leaf_test(pattern: JSON, shape: Shape, path: str, *, floats: bool = False) -> LeafTest:
    """Return the test of a scalar pattern on values of a type; raises UnconvertibleError."""
    leaf = compile_leaf(pattern, float_numbers=floats)
    missing = leaf(None)
    if pattern is None:
        return LeafTest(_null_test(shape, path), missing)
    if isinstance(pattern, str) and ("{{" in pattern or find_references(pattern)):
        raise UnconvertibleError(
            "pattern-variable",
            path,
            "the pattern compares with a value that is known at admission only, which may hold operators or wildcards",
            "write the comparison as a deny condition with Equals",
        )
    match shape:
        case Shape.BOOL:
            return _bool_test(leaf, missing)
        case Shape.INT | Shape.NUMBER:
            return LeafTest(_number_test(pattern, path, floats=floats), missing, (0, 1, -1), leaf)
        case Shape.STRING | Shape.TIME:
            return LeafTest(_string_test(pattern, path, floats=floats), missing, ("",), leaf)
        case Shape.QUANTITY:
            return LeafTest(_quantity_test(pattern, path, floats=floats), missing, ("0",), leaf)
        case Shape.INT_OR_STRING:
            return LeafTest(_either_test(pattern, path, floats=floats), missing)
        case Shape.OBJECT | Shape.MAP:
            return LeafTest(lambda _: FALSE, missing)
    raise UnconvertibleError("no-schema", path, "no schema declares the type of the field", _NO_SCHEMA)


# -------------------------------------------------------------------------------------------------------------- by type


def _null_test(shape: Shape, path: str) -> Callable[[Cel], Cel]:
    """Return the test of `null`: missing, null, false, 0 or the empty text."""
    zero: JSON
    match shape:
        case Shape.BOOL:
            return lambda value: value.not_()
        case Shape.INT | Shape.NUMBER:
            zero = 0
        case Shape.STRING | Shape.TIME | Shape.QUANTITY:
            zero = ""
        case Shape.INT_OR_STRING:
            return lambda value: any_of([compare(value, "==", literal(0)), compare(value, "==", literal(""))])
        case Shape.OBJECT | Shape.MAP:
            return lambda _: FALSE
        case _:
            raise UnconvertibleError("no-schema", path, "no schema declares the type of the field", _NO_SCHEMA)
    return lambda value: compare(value, "==", literal(zero))


def _bool_test(leaf: Callable[[JSON], bool], missing: bool) -> LeafTest:
    match leaf(True), leaf(False):
        case True, True:
            return LeafTest(lambda _: TRUE, missing)
        case True, False:
            return LeafTest(lambda value: value, missing, (False, True), leaf)
        case False, True:
            return LeafTest(lambda value: value.not_(), missing, (True, False), leaf)
    return LeafTest(lambda _: FALSE, missing)


def _number_test(pattern: JSON, path: str, *, floats: bool) -> Callable[[Cel], Cel]:
    if isinstance(pattern, bool):
        return lambda _: FALSE
    if isinstance(pattern, (int, float)):
        return lambda value: compare(value, "==", literal(pattern))
    return lambda value: _alternatives(pattern, value, lambda kind, operand: _on_number(kind, operand, value, path))


def _on_number(kind: Operator, operand: str, value: Cel, path: str) -> Cel:
    quantity = try_quantity(operand)
    if quantity is None:
        if try_duration(operand) is not None:
            raise UnconvertibleError(
                "duration-number", path, "the field is a number, which is compared with a duration", "compare numbers"
            )
        return _on_text(kind, operand, call("string", value, returns=CelType.STRING))
    whole = quantity.whole()
    if whole is None:
        compared = call("quantity", call("string", value)).method("compareTo", _quantity(operand), returns=CelType.INT)
        return compare(compared, _SIGNS[kind], literal(0))
    return compare(value, _SIGNS[kind], literal(whole))


def _string_test(pattern: JSON, path: str, *, floats: bool) -> Callable[[Cel], Cel]:
    if isinstance(pattern, bool):
        return lambda _: FALSE
    if isinstance(pattern, (int, float)):
        if floats or isinstance(pattern, float):
            raise UnconvertibleError(
                "number-text", path, "the field is a text, which is read as a number", "quote the number"
            )
        return lambda value: value.method("matches", literal(_number_regex(pattern)), returns=CelType.BOOL)

    def test(value: Cel) -> Cel:
        found = _alternatives(pattern, value, lambda kind, operand: _on_any_text(kind, operand, value))
        # COMPAT: a text that is that of the pattern passes. Names and labels can be ranges; `!a` or `a | b` occurs in
        # free texts only, where values do not look like that, and is left out to keep the expression readable.
        return any_of([found, compare(value, "==", literal(pattern))]) if _RANGE.fullmatch(str(pattern)) else found

    return test


def _number_regex(number: int) -> str:
    sign = "-" if number < 0 else r"[-+]?" if number == 0 else r"\+?"
    return f"^{sign}0*{abs(number)}$"


def _on_any_text(kind: Operator, operand: str, value: Cel) -> Cel:
    """Compare a text as duration, as quantity, or as text."""
    duration, quantity = try_duration(operand), try_quantity(operand)
    if duration is None and quantity is None:
        return _on_text(kind, operand, value)
    plain = TRUE if kind is Operator.NOT_EQUAL else FALSE
    if quantity is not None:
        compared = call("quantity", value).method("compareTo", _quantity(operand), returns=CelType.INT)
        plain = _guard(
            call("isQuantity", value, returns=CelType.BOOL), compare(compared, _SIGNS[kind], literal(0)), plain
        )
    if duration is not None:
        is_duration = value.method("matches", literal(_DURATION), returns=CelType.BOOL)
        period = compare(call("duration", value), _SIGNS[kind], call("duration", literal(operand)))
        plain = _guard(is_duration, period, plain)
    return plain


def _guard(guard: Cel, inside: Cel, outside: Cel) -> Cel:
    if outside.text == "false":
        return all_of([guard, inside])
    if outside.text == "true":
        return any_of([guard.not_(), inside])
    return ternary(guard, inside, outside)


def _on_text(kind: Operator, operand: str, value: Cel) -> Cel:
    if kind is Operator.EQUAL:
        return text_matches(value, operand)
    if kind is Operator.NOT_EQUAL:
        return text_matches(value, operand).not_()
    return FALSE


def _quantity_test(pattern: JSON, path: str, *, floats: bool) -> Callable[[Cel], Cel]:
    if isinstance(pattern, bool):
        return lambda _: FALSE
    if isinstance(pattern, (int, float)):
        raise UnconvertibleError(
            "quantity-number", path, "the pattern is a number, which matches some spellings of the quantity only",
            f'write "{pattern}" in quotes, which compares quantities',
        )  # fmt: skip

    def test(value: Cel) -> Cel:
        text = call("string", value, returns=CelType.STRING)

        def one(kind: Operator, operand: str) -> Cel:
            quantity = try_quantity(operand)
            if quantity is None:
                if try_duration(operand) is not None:
                    raise UnconvertibleError(
                        "duration-quantity", path, "a quantity is compared with a duration", "compare quantities"
                    )
                return TRUE if operand == "?*" and kind is Operator.EQUAL else _on_text(kind, operand, text)
            compared = call("quantity", text).method("compareTo", _quantity(operand), returns=CelType.INT)
            return compare(compared, _SIGNS[kind], literal(0))

        return _alternatives(pattern, value, one)

    return test


def _either_test(pattern: JSON, path: str, *, floats: bool) -> Callable[[Cel], Cel]:
    as_number, as_text = _number_test(pattern, path, floats=floats), _string_test(pattern, path, floats=floats)

    def test(value: Cel) -> Cel:
        is_text = compare(call("type", value), "==", Cel("string"))
        text, number = as_text(value), as_number(value)
        if text.text == number.text:
            return text
        return _guard(is_text, text, number) if number.text in ("true", "false") else ternary(is_text, text, number)

    return test


# ---------------------------------------------------------------------------------------------------------- the grammar


def _alternatives(pattern: JSON, value: Cel, one: Callable[[Operator, str], Cel]) -> Cel:
    """Read `a | b & c` and join what `one` makes of each comparison; alternatives of plain texts become a list."""
    if not isinstance(pattern, str):
        return FALSE
    found = [_conjunction(each.strip(" "), value, one) for each in pattern.split("|")]
    return _as_membership(value, found, "==") or any_of(found)


def _conjunction(text: str, value: Cel, one: Callable[[Operator, str], Cel]) -> Cel:
    found = [_comparison(each.strip(" "), one) for each in text.split("&")]
    listed = _as_membership(value, found, "!=")
    return all_of(found) if listed is None else listed.not_()


def _as_membership(value: Cel, tests: Sequence[Cel], sign: str) -> Cel | None:
    """Return several comparisons with plain texts as a list; None for any others."""
    prefix = f"{value.text} {sign} "
    members = [each.text.removeprefix(prefix) for each in tests]
    if len(tests) < 2 or not all(
        each.text.startswith(prefix) and member[0] == "'" == member[-1] and "'" not in member[1:-1]
        for each, member in zip(tests, members, strict=True)
    ):
        return None
    return compare(value, "in", Cel(f"[{', '.join(dict.fromkeys(members))}]", CelType.LIST))


def _comparison(condition: str, one: Callable[[Operator, str], Cel]) -> Cel:
    kind, rest = split_operator(condition)
    if kind in (Operator.IN_RANGE, Operator.NOT_IN_RANGE):
        ends = _RANGE.fullmatch(condition)
        if ends is None:
            return one(Operator.EQUAL, condition.strip(GO_SPACE))
        if kind is Operator.IN_RANGE:
            return all_of([one(Operator.MORE_EQUAL, ends[1]), one(Operator.LESS_EQUAL, ends[3])])
        return any_of([one(Operator.LESS, ends[1]), one(Operator.MORE, ends[3])])
    return one(kind, rest.strip(GO_SPACE))


def _quantity(operand: str) -> Cel:
    return call("quantity", literal(operand))
