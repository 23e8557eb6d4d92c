"""Leaves of a pattern: one scalar of a policy against one value of a resource.

A text leaf is a small language: `a | b`, `a & b`, `>5`, `<=1Gi`, `!x`, `1-10`, `1!-10`, wildcards. Every comparison is
tried as durations, then as quantities, then as text. All of it is read once, at compile time; the resulting closure
never raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final

from pyverno.kube.gofloat import parse_float
from pyverno.kube.json import JSON
from pyverno.kube.names import MAX_NAME
from pyverno.kube.quantity import try_quantity
from pyverno.kube.time.duration import try_duration
from pyverno.kube.wildcard import compile_wildcard, has_wildcard
from pyverno.lang.pattern.anchors import GO_SPACE
from pyverno.lang.pattern.literal import Literal
from pyverno.lazyregex import regex

__all__ = [
    "Leaf",
    "Operator",
    "as_float",
    "compile_leaf",
    "integer_range",
    "literal_texts",
    "number_text",
    "plain_text",
    "split_operator",
]

Leaf = Callable[[JSON], bool]
"""A compiled leaf: does this value satisfy it?"""


class Operator(StrEnum):
    """An operator before or between the operands of a text leaf; its value is the spelling."""

    EQUAL = ""
    MORE_EQUAL = ">="
    LESS_EQUAL = "<="
    MORE = ">"
    LESS = "<"
    NOT_EQUAL = "!"
    IN_RANGE = "-"
    NOT_IN_RANGE = "!-"


_PREFIXES: Final = (Operator.MORE_EQUAL, Operator.LESS_EQUAL, Operator.MORE, Operator.LESS, Operator.NOT_EQUAL)
_ENDPOINT: Final = r"([-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+)"
_NOT_IN_RANGE: Final = regex(_ENDPOINT + "!-" + _ENDPOINT)
_IN_RANGE: Final = regex(_ENDPOINT + "-" + _ENDPOINT)
_INTEGER: Final = regex(r"[+-]?[0-9]+")
_INT64_DIGITS: Final = 19

_COMPARE: Final[dict[Operator, Callable[[JSON, JSON], bool]]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.MORE: operator.gt,
    Operator.LESS: operator.lt,
    Operator.MORE_EQUAL: operator.ge,
    Operator.LESS_EQUAL: operator.le,
}


def compile_leaf(pattern: JSON, *, float_numbers: bool = False) -> Leaf:
    """Compile a leaf into a closure that checks a value.

    With `float_numbers` an integer of the pattern behaves as a floating point number, as all numbers inside
    anyPattern do: then `5` accepts the text `"5.0"` too. A map as leaf accepts any map, a list accepts nothing.

    >>> compile_leaf(">=1Gi & <3Gi")("2048Mi")
    True
    >>> compile_leaf(5)("5.0"), compile_leaf(5, float_numbers=True)("5.0")
    (False, True)
    """
    # follows Kyverno's pkg/engine/pattern
    if isinstance(pattern, Literal):
        return _comparison(Operator.EQUAL, str(pattern), pattern.__eq__)
    if isinstance(pattern, str):
        return _shared_text_leaf(pattern) if len(pattern) <= _SHARED_LENGTH else _text_leaf(pattern)
    if isinstance(pattern, bool):
        return _true_leaf if pattern else _false_leaf
    if pattern is None:
        return _null_leaf
    if isinstance(pattern, float) or (isinstance(pattern, int) and float_numbers):
        return _float_leaf(as_float(pattern))
    if isinstance(pattern, int):
        return _int_leaf(pattern)
    if isinstance(pattern, dict):
        return _map_leaf
    return _never


def literal_texts(pattern: str) -> frozenset[str] | None:
    """Return the texts that a leaf of plain alternatives accepts; None for any other leaf.

    >>> sorted(literal_texts("RuntimeDefault | Localhost"))
    ['Localhost', 'RuntimeDefault', 'RuntimeDefault | Localhost']
    >>> literal_texts(">5") is None
    True
    """
    return _shared_literals(pattern) if len(pattern) <= _SHARED_LENGTH else _literals(pattern)


def _literals(pattern: str) -> frozenset[str] | None:
    texts = {pattern}
    for alternative in pattern.split("|"):
        text = alternative.strip(" ")
        if "&" in text or split_operator(text)[0] is not Operator.EQUAL:
            return None
        text = text.strip(GO_SPACE)
        if has_wildcard(text) or try_duration(text) is not None or try_quantity(text) is not None:
            return None
        texts.add(text)
    return frozenset(texts)


_SHARED_LENGTH: Final = MAX_NAME
"""Leaves up to this length are kept for patterns to come: policies ask for the same few values, copies for all."""

_shared_literals = lru_cache(maxsize=1024)(_literals)


def integer_range(pattern: str) -> tuple[int | None, int | None] | None:
    """Return the least and greatest integer (None = no limit) that a leaf of plain comparisons accepts.

    Zero is left out of the promise, because it may also be a duration. None when the leaf is not of this kind.

    >>> integer_range(">0 & <=65535")
    (1, 65535)
    """
    low: int | None = None
    high: int | None = None
    for condition in pattern.split("&"):
        kind, rest = split_operator(condition.strip(" "))
        ends = _IN_RANGE.fullmatch(rest)
        least, most = (ends[1], ends[2]) if kind is Operator.IN_RANGE and ends else (rest, rest)
        bounds = [_whole(text.strip(GO_SPACE)) for text in (least, most)]
        if "|" in condition or None in bounds or kind not in _INTEGER_BOUNDS:
            return None
        floor, ceiling = _INTEGER_BOUNDS[kind]
        if floor is not None:
            low = max(low, bounds[0] + floor) if low is not None else bounds[0] + floor
        if ceiling is not None:
            high = min(high, bounds[1] + ceiling) if high is not None else bounds[1] + ceiling
    return low, high


def _whole(text: str) -> JSON:
    quantity = try_quantity(text)
    return None if quantity is None else quantity.whole()


_INTEGER_BOUNDS: Final[dict[Operator, tuple[int | None, int | None]]] = {
    Operator.EQUAL: (0, 0),
    Operator.IN_RANGE: (0, 0),
    Operator.MORE: (1, None),
    Operator.MORE_EQUAL: (0, None),
    Operator.LESS: (None, -1),
    Operator.LESS_EQUAL: (None, 0),
}


def split_operator(condition: str) -> tuple[Operator, str]:
    """Split one condition into its operator and the rest; ranges keep their whole text.

    >>> split_operator(">= 5")
    (<Operator.MORE_EQUAL: '>='>, ' 5')
    """
    # Kyverno: a leading `!` wins over a range, so `!1-5` means "not the text 1-5"
    if len(condition) < 2:
        return Operator.EQUAL, condition
    for prefix in _PREFIXES:
        if condition.startswith(prefix.value):
            return prefix, condition[len(prefix.value) :]
    if _NOT_IN_RANGE.fullmatch(condition):
        return Operator.NOT_IN_RANGE, condition
    if _IN_RANGE.fullmatch(condition):
        return Operator.IN_RANGE, condition
    return Operator.EQUAL, condition


def as_float(value: float) -> float:
    """Return a number as float; one that is too large becomes infinite.

    >>> as_float(5), as_float(10**400)
    (5.0, inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number_text(value: JSON) -> str | None:
    """Render a value for comparison as duration or quantity; None when it cannot be one.

    >>> number_text(None), number_text(1.5), number_text(True)
    ('0', '1.500000', None)
    """
    if isinstance(value, str):
        return value
    if value is None:
        return "0"
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:f}"
    return None


def plain_text(value: JSON) -> str | None:
    """Render a value for comparison as text; None for null, maps and lists, which never match.

    >>> plain_text(1.5), plain_text(True), plain_text(None)
    ('1.5E+00', 'true', None)
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        import decimal  # few patterns hold numbers with a point

        digits = len(decimal.Decimal(repr(value)).normalize().as_tuple().digits)
        return f"{value:.{digits - 1}E}"
    return None


# --- text -----------------------------------------------------------------------------------------------------------


def _text_leaf(pattern: str) -> Leaf:
    literals = literal_texts(pattern)
    if literals is not None:
        return _literal_leaf(literals)
    alternatives = [_conjunction(alternative.strip(" ")) for alternative in pattern.split("|")]
    if len(alternatives) == 1 and _is_wildcard_only(pattern):
        return alternatives[0]  # a wildcard matches its own text, so the identity check is not needed
    either = alternatives[0] if len(alternatives) == 1 else _any_of(tuple(alternatives))

    def leaf(value: JSON) -> bool:
        return value == pattern or either(value)

    return leaf


_shared_text_leaf = lru_cache(maxsize=1024)(_text_leaf)


def _is_wildcard_only(pattern: str) -> bool:
    return pattern in {"*", "?*"}


def _literal_leaf(literals: frozenset[str]) -> Leaf:
    truths = tuple(truth for truth, text in ((True, "true"), (False, "false")) if text in literals)

    def leaf(value: JSON) -> bool:
        if isinstance(value, str):
            return value in literals
        return isinstance(value, bool) and value in truths  # numbers render as quantities, which no literal is

    return leaf


def _any_of(leaves: tuple[Leaf, ...]) -> Leaf:
    def leaf(value: JSON) -> bool:
        return any(alternative(value) for alternative in leaves)

    return leaf


def _all_of(leaves: tuple[Leaf, ...]) -> Leaf:
    def leaf(value: JSON) -> bool:
        return all(condition(value) for condition in leaves)

    return leaf


def _conjunction(text: str) -> Leaf:
    conditions = [_condition(condition.strip(" ")) for condition in text.split("&")]
    return conditions[0] if len(conditions) == 1 else _all_of(tuple(conditions))


def _condition(condition: str) -> Leaf:
    kind, rest = split_operator(condition)
    if kind is Operator.IN_RANGE and (ends := _IN_RANGE.fullmatch(condition)):
        return _all_of((_comparison(Operator.MORE_EQUAL, ends[1]), _comparison(Operator.LESS_EQUAL, ends[2])))
    if kind is Operator.NOT_IN_RANGE and (ends := _NOT_IN_RANGE.fullmatch(condition)):
        return _any_of((_comparison(Operator.LESS, ends[1]), _comparison(Operator.MORE, ends[2])))
    return _comparison(kind, rest.strip(GO_SPACE))


def _comparison(kind: Operator, operand: str, matches: Callable[[str], bool] | None = None) -> Leaf:
    duration, quantity = try_duration(operand), try_quantity(operand)
    as_text = _text_comparison(kind, matches or compile_wildcard(operand))
    if duration is None and quantity is None:
        return as_text
    compare = _COMPARE[kind]
    whole = quantity.whole() if quantity is not None else None

    def leaf(value: JSON) -> bool:
        if whole is not None and type(value) is int and value:  # no duration is written as a bare number but 0
            return compare(value, whole)
        text = number_text(value)
        if text is None:
            return as_text(value)
        if duration is not None and (period := try_duration(text)) is not None:
            return compare(period, duration)
        if quantity is not None and (amount := try_quantity(text)) is not None:
            return compare(amount.compare(quantity), 0)
        return as_text(value)

    return leaf


def _text_comparison(kind: Operator, matches: Callable[[str], bool]) -> Leaf:
    if kind not in (Operator.EQUAL, Operator.NOT_EQUAL):
        return _never
    negated = kind is Operator.NOT_EQUAL

    def leaf(value: JSON) -> bool:
        text = value if isinstance(value, str) else plain_text(value)
        return text is not None and matches(text) is not negated

    return leaf


# --- other scalars --------------------------------------------------------------------------------------------------


def _never(_value: JSON) -> bool:
    return False


def _map_leaf(value: JSON) -> bool:
    return isinstance(value, dict)


def _true_leaf(value: JSON) -> bool:
    return value is True


def _false_leaf(value: JSON) -> bool:
    return value is False


def _null_leaf(value: JSON) -> bool:
    return not value and not isinstance(value, (dict, list))


def _int_leaf(pattern: int) -> Leaf:
    def leaf(value: JSON) -> bool:
        if isinstance(value, (int, float)):
            return not isinstance(value, bool) and value == pattern
        return isinstance(value, str) and _parse_int(value) == pattern

    return leaf


def _float_leaf(pattern: float) -> Leaf:
    def leaf(value: JSON) -> bool:
        if isinstance(value, (int, float)):
            return not isinstance(value, bool) and value == pattern
        return isinstance(value, str) and parse_float(value) == pattern

    return leaf


def _parse_int(text: str) -> int | None:
    # Go's strconv.ParseInt: int64, no blanks, no underscores
    digits = text.lstrip("+-0")  # Python refuses to read thousands of zeros
    if _INTEGER.fullmatch(text) is None or len(digits) > _INT64_DIGITS:
        return None
    number = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return number if -(2**63) <= number < 2**63 else None
