"""Kubernetes' JSONPath, as far as printer columns go: `.a.b`, `['a']`, `[0]`, `[1:3]`, `[*]`, `..a`, `[?(@.a=="b")]`.

Paths are compiled once.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyverno.errors import PyvernoError
from pyverno.kube.json import JSON

__all__ = ["JSONPathError", "compile_path"]

Path: TypeAlias = Callable[[JSON], list[JSON]]
"""Gives what a path finds in a value, in order; raises LookupError where the value has not the shape."""

_NAME = re.compile(r"(?:[^.\[\]\\{}'\"\s]|\\.)+")
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*)(?::(-?\d*))?)?", re.ASCII)
_FILTER = re.compile(r"\?\((.*)\)", re.DOTALL)
_COMPARISON = re.compile(r"^\s*(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+?)\s*$", re.DOTALL)
_OPERATORS: Mapping[str, Callable[[JSON, JSON], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JSONPathError(PyvernoError):
    """A text is no path."""

    code = "jsonpath"

    def __init__(self, text: str) -> None:
        """Take the text."""
        super().__init__(f"`{text}` is no JSONPath that can be read here")


def compile_path(text: str) -> Path:
    r"""Compile a path; raises JSONPathError.

    >>> ready = compile_path('.status.conditions[?(@.type=="Ready")].status')
    >>> ready({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    ['True']
    >>> compile_path(r".metadata.labels['app\.io/x']")({"metadata": {"labels": {"app.io/x": "a"}}})
    ['a']
    """
    steps = _steps(text, text)

    def find(value: JSON) -> list[JSON]:
        found = [value]
        for step in steps:
            found = step(found)
        return found

    return find


_Step: TypeAlias = Callable[[list[JSON]], list[JSON]]


def _steps(text: str, whole: str) -> list[_Step]:
    steps: list[_Step] = []
    place = 0
    while place < len(text):
        if text.startswith("..", place):
            steps.append(_descend)
            place += 1 if text.startswith("..[", place) else 2
            if place < len(text) and text[place] not in ".[":
                place = _read_name(text, place, steps, whole)
        elif text[place] == ".":
            place += 1
            if place < len(text) and text[place] != "[":
                place = _read_name(text, place, steps, whole)
        elif text[place] == "[":
            end = _closing(text, place, whole)
            steps.append(_bracket(text[place + 1 : end].strip(), whole))
            place = end + 1
        elif place == 0 and text[0] in "$@":
            place = 1
        elif place == 0:
            place = _read_name(text, place, steps, whole)
        else:
            raise JSONPathError(whole)
    return steps


def _read_name(text: str, place: int, steps: list[_Step], whole: str) -> int:
    found = _NAME.match(text, place)
    if found is None:
        raise JSONPathError(whole)
    steps.append(_wildcard if found[0] == "*" else _field(re.sub(r"\\(.)", r"\1", found[0])))
    return found.end()


def _closing(text: str, place: int, whole: str) -> int:
    """Return where a bracket ends, quotes and inner brackets passed over."""
    depth, quote = 0, ""
    while place < len(text):
        character = text[place]
        if quote:
            if character == "\\":
                place += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
            if not depth:
                return place
        place += 1
    raise JSONPathError(whole)


def _bracket(text: str, whole: str) -> _Step:
    if text == "*":
        return _wildcard
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return _field(re.sub(r"\\(.)", r"\1", text[1:-1]))
    chosen = _FILTER.fullmatch(text)
    if chosen is not None:
        return _filter(chosen[1], whole)
    if "," in text:
        return _union([_bracket(item.strip(), whole) for item in text.split(",")])
    found = _SLICE.fullmatch(text)
    if found is None or not text:
        raise JSONPathError(whole)
    start, end, step = (int(number) if number not in (None, "", "-") else None for number in found.groups())
    return _item(start or 0) if ":" not in text else _slice(start, end, 1 if step is None else step)


def _field(name: str) -> _Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _wildcard(values: list[JSON]) -> list[JSON]:
    return [item for value in values for item in _children(value)]


def _descend(values: list[JSON]) -> list[JSON]:
    """Give all values that hold others, outer ones first."""
    found: list[JSON] = []
    for value in values:
        children = _children(value)
        if children:
            found.append(value)
            found.extend(_descend(children))
    return found


def _children(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _item(index: int) -> _Step:
    return lambda values: [_list(value)[index] for value in values if value is not None]


def _slice(start: int | None, end: int | None, step: int) -> _Step:
    def select(values: list[JSON]) -> list[JSON]:
        found: list[JSON] = []
        for value in values:
            if value is not None:
                items = _list(value)
                first = (start or 0) + (len(items) if (start or 0) < 0 else 0)
                last = len(items) if end is None else end + (len(items) if end < 0 else 0)
                if first != last and not (0 <= first < len(items) and 0 <= last <= len(items) and first <= last):
                    raise LookupError("index")
                if step <= 0:
                    raise LookupError("step")
                found.extend(items[first:last:step])
        return found

    return select


def _union(steps: list[_Step]) -> _Step:
    return lambda values: [item for step in steps for item in step(values)]


def _filter(text: str, whole: str) -> _Step:
    comparison = _COMPARISON.fullmatch(text)
    if comparison is None:
        path = compile_path(text.strip())
        return lambda values: [item for value in values for item in _list(value) if path(item)]
    left, right = _operand(comparison[1], whole), _operand(comparison[3], whole)
    compare = _OPERATORS[comparison[2]]

    def passes(item: JSON) -> bool:
        lefts, rights = left(item), right(item)
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1 or not _are_comparable(lefts[0], rights[0]):
            raise LookupError("comparison")
        return compare(lefts[0], rights[0])

    return lambda values: [item for value in values for item in _list(value) if passes(item)]


def _operand(text: str, whole: str) -> Path:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        literal: JSON = text[1:-1]
    elif text in ("true", "false"):
        literal = text == "true"
    elif re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII):
        literal = float(text) if "." in text else int(text)
    elif text.startswith(("@", ".", "$", "[")):
        return compile_path(text)
    else:
        raise JSONPathError(whole)
    return lambda _: [literal]


def _are_comparable(left: JSON, right: JSON) -> bool:
    """Return whether Go's templates compare two values: both texts, both bools, or both numbers."""
    return any(isinstance(left, kind) and isinstance(right, kind) for kind in (str, bool)) or (
        not isinstance(left, (str, bool, dict, list))
        and not isinstance(right, (str, bool, dict, list))
        and left is not None
        and right is not None
    )


def _list(value: JSON) -> list[JSON]:
    if isinstance(value, list):
        return value
    raise LookupError("list")
