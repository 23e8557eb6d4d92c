"""AnyIn, AllIn, AnyNotIn, AllNotIn, and the deprecated In and NotIn.

Everything is compared as text. Wildcards count on either side where `Sides` allows: a wildcard of a requester must not
exempt. The negated operators must never hold for a null or map key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from pyverno.errors import DocumentError
from pyverno.kube.json import JSON, decode, go_text, is_number
from pyverno.kube.wildcard import compile_wildcard, has_wildcard, match
from pyverno.lang.pattern.operators_values import duration_of, quantity_of
from pyverno.lazyregex import regex

__all__ = ["BOTH_SIDES", "MEMBERSHIP", "CompileSided", "Sides", "compile_in", "compile_not_in"]

Check = Callable[[JSON], bool]
Test = Callable[[str], bool]
Keys = Callable[[list[str]], bool]

# Kyverno: pkg/engine/operator. The sign may be `|`, by a slip that is kept.
_ENDPOINT = r"([-|+]?[0-9]++(?:\.[0-9]++)?[A-Za-z]*+)"
_INSIDE = regex(f"{_ENDPOINT}-{_ENDPOINT}")
_OUTSIDE = regex(f"{_ENDPOINT}!-{_ENDPOINT}")


class Sides(NamedTuple):
    """On which side of a condition texts are patterns, and not data that a requester may have written.

    `written` are texts of the value that are in the policy, and are patterns whatever the other texts are.
    """

    key_is_pattern: bool = True
    value_is_pattern: bool = True
    written: frozenset[str] = frozenset()


BOTH_SIDES = Sides()


class CompileSided(Protocol):
    """Compiles an operator for a value and for what may be a pattern."""

    def __call__(self, value: JSON, sides: Sides = BOTH_SIDES) -> Check:
        """Return the check of keys."""
        ...


def _any(test: Test) -> Keys:
    return lambda keys: any(map(test, keys))


def _all(test: Test) -> Keys:
    return lambda keys: all(map(test, keys))


def _any_not(test: Test) -> Keys:
    return lambda keys: not all(map(test, keys))


def _all_not(test: Test) -> Keys:
    return lambda keys: not any(map(test, keys))


def _compile_any_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    return _membership(value, _any, takes_scalars=True, sides=sides)


def _compile_all_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    return _membership(value, _all, sides=sides)


def _compile_any_not_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    return _membership(value, _any_not, takes_scalars=True, outside=True, sides=sides)


def _compile_all_not_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    return _membership(value, _all_not, sides=sides)


MEMBERSHIP: Mapping[str, tuple[str, CompileSided]] = MappingProxyType(
    {
        "AnyIn": ("some key is one of the values", _compile_any_in),
        "AllIn": ("every key is one of the values", _compile_all_in),
        "AnyNotIn": ("some key is none of the values", _compile_any_not_in),
        "AllNotIn": ("no key is one of the values", _compile_all_not_in),
    }
)
"""The operators of this family: what they mean, and how to compile them for a value."""


def _scalar_text(key: JSON) -> str | None:
    if isinstance(key, str):
        return key
    if isinstance(key, bool) or is_number(key):
        return go_text(key)
    return None


def _never(_keys: list[str]) -> bool:
    return False


def _membership(
    value: JSON,
    quantify: Callable[[Test], Keys],
    *,
    takes_scalars: bool = False,
    outside: bool = False,
    sides: Sides = BOTH_SIDES,
) -> Check:
    is_negated = quantify in (_any_not, _all_not)
    one = _one_key(value, sides)
    many = _many_keys(value, quantify, takes_scalars=takes_scalars, outside=outside, sides=sides)

    def check(key: JSON) -> bool:
        if isinstance(key, list):
            return many([go_text(item) for item in key])
        text = _scalar_text(key)
        if text is None or one is None:
            return False
        found = one(text)
        # None: the value is JSON but no list of texts, which fails the negated operators as well
        return False if found is None else found is not is_negated

    return check


def _one_key(value: JSON, sides: Sides) -> Callable[[str], bool | None] | None:
    """Return the test of a scalar key; None for values of a type that holds nothing."""
    if isinstance(value, list):
        return _holds([go_text(item) for item in value], sides)
    if not isinstance(value, str):
        return None
    matches = compile_wildcard(value) if sides.value_is_pattern else value.__eq__
    if sides.value_is_pattern and _is_range(value):
        inside = _compile_pattern(value)
        return lambda key: matches(key) or inside(key)
    texts = _texts(value)
    if texts is None:
        return lambda key: True if matches(key) else None
    members = frozenset(texts)
    return lambda key: matches(key) or key in members


def _many_keys(
    value: JSON, quantify: Callable[[Test], Keys], *, takes_scalars: bool, outside: bool, sides: Sides
) -> Keys:
    if isinstance(value, list):
        return quantify(_holds([go_text(item) for item in value], sides))
    if not isinstance(value, str):
        text = _scalar_text(value) if takes_scalars else None
        return _never if text is None else quantify(_holds([text], sides))
    equal_to_value = quantify in (_any, _all)
    rest = _many_keys_against_text(value, quantify, outside=outside, sides=sides)
    return lambda keys: equal_to_value if keys == [value] else rest(keys)


def _many_keys_against_text(value: str, quantify: Callable[[Test], Keys], *, outside: bool, sides: Sides) -> Keys:
    if sides.value_is_pattern and _is_range(value):
        # COMPAT: the first `-` becomes `!-`, also when it is a sign
        return _any(_compile_pattern(value.replace("-", "!-", 1))) if outside else quantify(_compile_pattern(value))
    texts = _texts(value)
    return _never if texts is None else quantify(_holds(texts, sides))


def _texts(value: str) -> list[str] | None:
    """Return the texts of a JSON array, the value alone when it is not JSON, None when it is JSON of another kind."""
    try:
        decoded = decode(value)
    except DocumentError:
        return [value]
    return _strings(decoded)


def _strings(decoded: JSON) -> list[str] | None:
    if decoded is None:
        return []
    if not isinstance(decoded, list):
        return None
    texts = ["" if item is None else item for item in decoded]  # Go leaves the zero value where null is
    return texts if all(isinstance(item, str) for item in texts) else None


def _holds(texts: Iterable[str], sides: Sides = BOTH_SIDES) -> Test:
    """Return the test whether a key matches one of the texts; `sides` decides which side may be a pattern."""
    members = tuple(texts)
    written = frozenset(members) if sides.value_is_pattern else sides.written
    wild = tuple(text for text in members if text in written and has_wildcard(text))
    literals = frozenset(members).difference(wild)
    patterns = tuple(map(compile_wildcard, wild))

    def holds(key: str) -> bool:
        return key in literals or any(matches(key) for matches in patterns)

    def holds_either_way(key: str) -> bool:
        return holds(key) or (has_wildcard(key) and any(match(key, text) for text in members))

    return holds_either_way if sides.key_is_pattern else holds


def _is_range(value: str) -> bool:
    return _INSIDE.fullmatch(value) is not None


def _compile_pattern(pattern: str) -> Test:
    """Return the test of a text against a range, as the pattern language reads it (`|` separates alternatives)."""
    # Kyverno: how package pkg/engine/pattern reads text patterns
    alternatives = tuple(_compile_alternative(piece.strip(" ")) for piece in pattern.split("|"))
    return lambda key: key == pattern or any(test(key) for test in alternatives)


def _compile_alternative(piece: str) -> Test:
    if piece.startswith("!") and len(piece) > 1:
        same = _compile_comparison(piece[1:].strip(), lambda order: order == 0, compile_wildcard(piece[1:].strip()))
        return lambda key: not same(key)
    if found := _OUTSIDE.fullmatch(piece):
        below = _compile_comparison(found[1], lambda order: order < 0)
        above = _compile_comparison(found[2], lambda order: order > 0)
        return lambda key: below(key) or above(key)
    if found := _INSIDE.fullmatch(piece):
        at_least = _compile_comparison(found[1], lambda order: order >= 0)
        at_most = _compile_comparison(found[2], lambda order: order <= 0)
        return lambda key: at_least(key) and at_most(key)
    return _compile_comparison(piece, lambda order: order == 0, compile_wildcard(piece))


def _compile_comparison(operand: str, accepts: Callable[[int], bool], otherwise: Test | None = None) -> Test:
    """Return the comparison of a text with an operand: as durations, else as quantities, else by `otherwise`."""
    duration = duration_of(operand)
    quantity = quantity_of(operand)

    def compare(key: str) -> bool:
        if duration is not None and (key_duration := duration_of(key)) is not None:
            return accepts((key_duration > duration) - (key_duration < duration))
        if quantity is not None and (key_quantity := quantity_of(key)) is not None:
            return accepts((key_quantity > quantity) - (key_quantity < quantity))
        return otherwise is not None and otherwise(key)

    return compare


def compile_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    """Return the check of the deprecated operator In.

    >>> compile_in(["*"])("a"), compile_in(["*"])(["a"])
    (True, False)
    """
    return _deprecated(value, sides, is_negated=False)


def compile_not_in(value: JSON, sides: Sides = BOTH_SIDES) -> Check:
    """Return the check of the deprecated operator NotIn.

    >>> compile_not_in("b")("a"), compile_not_in(["b"])("a")
    (False, True)
    """
    return _deprecated(value, sides, is_negated=True)


def _deprecated(value: JSON, sides: Sides, *, is_negated: bool) -> Check:
    # Kyverno: pkg/engine/variables/operator, in
    one = _holds([go_text(item) for item in value], sides) if isinstance(value, list) else None
    matches: Test | None = None
    if isinstance(value, str):
        matches = compile_wildcard(value) if sides.value_is_pattern else value.__eq__
    texts = _deprecated_texts(value)
    members = None if texts is None else frozenset(texts)

    def check_one(key: str) -> bool:
        if one is not None:
            return one(key) is not is_negated
        if matches is not None and matches(key):
            return not is_negated
        return members is not None and (key in members) is not is_negated

    def check(key: JSON) -> bool:
        if not isinstance(key, list):
            text = _scalar_text(key)
            return text is not None and check_one(text)
        if not all(isinstance(item, str) for item in key):
            return False
        if isinstance(value, str) and key == [value]:
            return True  # COMPAT: also for NotIn
        return members is not None and members.issuperset(key) is not is_negated

    return check


def _deprecated_texts(value: JSON) -> list[str] | None:
    if isinstance(value, list):
        return value if all(isinstance(item, str) for item in value) else None
    if not isinstance(value, str):
        return None
    try:
        return _strings(decode(value))
    except DocumentError:
        return None
