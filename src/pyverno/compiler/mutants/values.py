"""Changes of constants and of the small language of pattern values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pyverno.compiler.mutants.mutant import Changes, removed, replaced
from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON

__all__ = ["constant_changes", "format_value", "pattern_texts"]

_COMPARISON: Final = re.compile(r"(>=|<=|>|<|!)\s*(.+)", re.DOTALL)
_SWAPPED: Final = {">=": ">", "<=": "<", ">": ">=", "<": "<="}


def format_value(value: JSON) -> str:
    """Return a value as titles show it."""
    text = " ".join(str(value).split()) if not isinstance(value, bool) else str(value).lower()
    return f"`{text if len(text) <= 60 else text[:59] + '…'}`"


def constant_changes(value: JSON, place: FieldPath) -> Changes:
    """Yield changes of a constant: another number, the other bool, another text, a list without one element."""
    if isinstance(value, bool):
        yield replaced(place, not value, f"{format_value(value)} becomes {format_value(not value)}")
    elif isinstance(value, (int, float)):
        for number in (value + 1, value - 1):
            yield replaced(place, number, f"{format_value(value)} becomes {format_value(number)}")
    elif isinstance(value, str) and "{{" not in value:
        for other in pattern_texts(value):
            yield replaced(place, other, f"{format_value(value)} becomes {format_value(other)}")
    elif isinstance(value, list) and all(not isinstance(each, (dict, list)) for each in value):
        for index, each in enumerate(value):
            if value.index(each) == index and value.count(each) == 1 and len(value) > 1:
                yield removed((*place, index), f"{format_value(each)} is dropped")


def pattern_texts(text: str) -> Iterator[str]:
    """Yield other texts for a value with `|`, `&`, operators and wildcards.

    >>> list(pattern_texts(">=2 | ?*"))
    ['?*', '>=2', '>2 | ?*']
    >>> list(pattern_texts("!*:latest"))
    ['*:latest']
    """
    for sign in ("|", "&"):
        parts = [part.strip() for part in text.split(sign)]
        if len(parts) > 1 and all(parts):
            for part in parts:
                if parts.count(part) == 1:
                    yield f" {sign} ".join(other for other in parts if other is not part)
            for index, part in enumerate(parts):
                found = _COMPARISON.fullmatch(part)
                if found is not None and "&" not in part:
                    for other in pattern_texts(part):
                        yield f" {sign} ".join((*parts[:index], other, *parts[index + 1 :]))
            return
    stripped = text.strip()
    found = _COMPARISON.fullmatch(stripped)
    if found is not None:
        operator, rest = found.groups()
        yield rest if operator == "!" else f"{_SWAPPED[operator]}{rest}"
        return
    if stripped in ("true", "false"):
        yield "false" if stripped == "true" else "true"
    elif re.fullmatch(r"-?\d+", stripped):
        yield str(int(stripped) + 1)
    elif stripped == "?*":
        yield "*"
    elif stripped and stripped != "*":
        yield f"{text}-mutant"
