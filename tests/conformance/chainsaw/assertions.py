"""Assertion trees: a document that describes what another one must contain.

Maps name required keys and leave the rest open, lists must agree item by item. A key `(expression)` checks the value
of the expression, `~` in front of a key iterates over the items of a list or map, `->name` behind it binds its
value. This module must never call a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.conformance.chainsaw.expressions import Bindings, evaluate, expression_of
from tests.conformance.outcome import same

__all__ = ["mismatches"]

_MISSING = object()
_KEY = re.compile(r"(?:~(?P<item>\w*)\.)?(?P<subject>.+?)(?:\s*->\s*(?P<name>\w+))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.+)\\", re.DOTALL)


def mismatches(expected: Any, value: Any, bindings: Bindings, path: str = "") -> Iterator[str]:
    """Yield the parts of an assertion that do not hold for a value, with their paths.

    >>> list(mismatches({"(length(a))": 2, "b": {"c": "x"}}, {"a": [1], "b": {}}, {}))
    ['(length(a)): expected 2, got 1', 'b.c: there is no such field']
    >>> list(mismatches({"~.a": {"(@ > `1`)": True}}, {"a": [2, 1]}, {}))
    ['a[1].(@ > `1`): expected True, got False']
    """
    if isinstance(expected, dict):
        yield from _map_mismatches(expected, value, bindings, path)
    elif isinstance(expected, list):
        yield from _list_mismatches(expected, value, bindings, path)
    else:
        expression = expression_of(expected)
        wanted = expected if expression is None else evaluate(expression, value, bindings)
        if not same(wanted, value):
            yield f"{path or '(root)'}: expected {wanted!r}, got {value!r}"


def _list_mismatches(expected: list[Any], value: Any, bindings: Bindings, path: str) -> Iterator[str]:
    if not isinstance(value, list) or len(value) != len(expected):
        size = len(value) if isinstance(value, list) else None
        yield (
            f"{path}: expected {len(expected)} items, got {value!r}"
            if size is None
            else (f"{path}: expected {len(expected)} items, got {size}")
        )
        return
    for index, (wanted, item) in enumerate(zip(expected, value, strict=True)):
        yield from mismatches(wanted, item, bindings, f"{path}[{index}]")


def _map_mismatches(expected: dict[str, Any], value: Any, bindings: Bindings, path: str) -> Iterator[str]:
    if not expected and value is None:
        yield f"{path}: must not be null"
    for text, wanted in expected.items():
        key = _Key.read(str(text))
        place = f"{path}.{key.subject}" if path else key.subject
        found = key.look_up(value, bindings)
        if found is _MISSING:
            yield f"{place}: there is no such field"
            continue
        if not key.iterates:
            more = {**bindings, key.name: found} if key.name else bindings
            yield from mismatches(wanted, found, more, place)
            continue
        for index, item in _items(found):
            more = {**bindings, **({key.item: index} if key.item else {}), **({key.name: item} if key.name else {})}
            yield from mismatches(wanted, item, more, f"{place}[{index}]")


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of an assertion: its field or expression, whether it iterates, and the names that it binds."""

    subject: str
    expression: str | None
    iterates: bool = False
    item: str = ""
    name: str = ""

    @classmethod
    def read(cls, text: str) -> _Key:
        escaped = _ESCAPED.fullmatch(text)
        if escaped:
            return cls(escaped[1], None)
        found = _KEY.fullmatch(text)
        if found is None:
            return cls(text, None)
        subject = found["subject"]
        iterates = found["item"] is not None
        return cls(subject, expression_of(subject), iterates, found["item"] or "", found["name"] or "")

    def look_up(self, value: Any, bindings: Bindings) -> Any:
        if self.expression is not None:
            return evaluate(self.expression, value, bindings)
        return value.get(self.subject, _MISSING) if isinstance(value, dict) else _MISSING


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from enumerate(value if isinstance(value, list) else [])
