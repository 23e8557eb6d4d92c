"""Values that could satisfy, or break, a pattern or a condition. They are guesses: the engine decides what they do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pyverno.kube.json import JSON
from pyverno.lang.pattern.anchors import Modifier, parse_anchor
from pyverno.lang.pattern.literal import Literal

__all__ = ["MISSING", "alternatives", "samples", "skeleton"]

MISSING: Final = object()
"""Stands for the removal of a field."""

_GENERIC: Final[Sequence[JSON]] = ("x", True, False, 0, 1, [], {})
_OPERATOR: Final = re.compile(r"^(>=|<=|>|<|!)?\s*(.*)$", re.DOTALL)
_RANGE: Final = re.compile(r"^(.+?)(!?-)(.+)$")
_QUANTITY: Final = re.compile(r"^([+-]?\d+)(\.\d+)?(\D*)$")
_MOST: Final = 24


def samples(wanted: JSON) -> Iterator[JSON]:
    """Yield values that a scalar pattern may accept, the plainest first.

    >>> [*samples("nginx:* | >2")]
    ['nginx:', 'nginx:x', 3, '3']
    """
    if isinstance(wanted, Literal) or not isinstance(wanted, str):
        yield wanted
        return
    for alternative in wanted.split("|"):
        for part in alternative.split("&")[:4]:
            yield from _of_part(part.strip())


def _of_part(part: str) -> Iterator[JSON]:
    found = _OPERATOR.match(part)
    operator, operand = (found.group(1) or "", found.group(2).strip()) if found else ("", part)
    if operator == "!":
        return
    if operator:
        yield from _near(operand, {">": (1,), ">=": (0,), "<": (-1,), "<=": (0,)}[operator])
        return
    span = _RANGE.match(operand)
    if span and _QUANTITY.match(span.group(1)) and _QUANTITY.match(span.group(3)):
        if span.group(2) == "-":
            yield from _near(span.group(1), (0,))
        else:
            yield from _near(span.group(3), (1,))
    if operand in ("true", "false"):
        yield operand == "true"
    if re.fullmatch(r"-?\d{1,15}", operand):
        yield int(operand)
    plainest, filled = (operand.replace("*", filler).replace("?", "x") for filler in ("", "x"))
    is_text = any(each.isalnum() for each in plainest)
    yield from dict.fromkeys((plainest, filled) if is_text else (filled, plainest))


def _near(text: str, steps: Sequence[int]) -> Iterator[JSON]:
    """Yield quantities beside one: as numbers where it has no unit, as texts, and whole units further."""
    found = _QUANTITY.match(text)
    if found is None:
        return
    number, unit = int(found.group(1)), found.group(3)
    for step in steps:
        if not unit:
            yield number + step
        yield f"{number + step}{unit}"


def alternatives(current: JSON, constants: Sequence[JSON]) -> Iterator[object]:
    """Yield possible replacements of a value: constants of the rule, the field's removal, and neutral values."""
    if isinstance(current, str) and current:
        # what stays close to the value is the better advice
        for constant in constants[:_MOST]:
            if isinstance(constant, str):
                found = _OPERATOR.match(constant.strip())
                yield from _without(current, (found.group(2) if found else constant).lstrip("!"))
    for constant in constants[:_MOST]:
        for each in constant if isinstance(constant, list) else (constant,):
            yield from samples(each)
        if isinstance(constant, list):
            yield list(constant)
    yield MISSING
    if isinstance(current, bool):
        yield not current
    if isinstance(current, list):
        for index in range(min(len(current), _MOST)):
            yield [*current[:index], *current[index + 1 :]]
        allowed = [item for constant in constants for item in (constant if isinstance(constant, list) else [constant])]
        yield [item for item in current if item in allowed]
        yield [item for item in current if item not in allowed]
    for constant in constants[:_MOST]:
        if isinstance(constant, (int, float)) and not isinstance(constant, bool):
            if abs(constant) < 2**53:  # neither NaN nor infinite
                yield from (int(constant) - 1, int(constant) + 1)
        elif isinstance(constant, str):
            found = _OPERATOR.match(constant.strip())
            yield from _near(found.group(2) if found else constant, (-1, 1))
    yield from _GENERIC


def _without(current: str, unwanted: str) -> Iterator[str]:
    """Yield texts like `current` that an unwanted text or wildcard no longer covers."""
    plain = unwanted.strip("*? ")
    if plain and plain in current and plain != current:
        yield current.replace(plain, ":v1" if plain.startswith(":") else "x")
    if ":" in current:
        yield f"{current.rpartition(':')[0]}:v1"
    yield f"{current}:v1"
    yield f"{current}x"


def skeleton(pattern: JSON) -> JSON:
    """Return the plainest value that has the shape of a pattern.

    >>> skeleton({"a": {"=(b)": 1, "c": "?*", "X(d)": "null"}, "^(e)": [{"f": 2}]})
    {'a': {'c': 'x'}, 'e': [{'f': 2}]}
    """
    if isinstance(pattern, dict):
        made: dict[str, JSON] = {}
        for key, value in pattern.items():
            anchor = parse_anchor(key)
            if anchor is None:
                made[key] = skeleton(value)
            elif anchor.modifier is Modifier.EXISTENCE or (anchor.modifier is Modifier.CONDITION and len(pattern) > 1):
                made[anchor.key] = skeleton(value)
        return made
    if isinstance(pattern, list):
        return [skeleton(each) for each in pattern[:1]] if pattern and isinstance(pattern[0], dict) else [*pattern]
    return next((each for each in samples(pattern) if each != ""), "x")
