"""One mutant: a policy document with one change, and where and what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyverno.engine.explain.nodes import FieldPath
from pyverno.kube.json import JSON
from pyverno.value import dataclass

__all__ = ["Change", "Changes", "Mutant", "removed", "renamed", "replaced"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed document. `place` is the path of the change in the original, `offset` a character of the text there."""

    place: FieldPath
    title: str
    document: JSON
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one place: its new value, its new key, or its removal (neither)."""

    place: FieldPath
    title: str
    value: JSON = None
    has_value: bool = False
    key: str = ""
    offset: int | None = None

    def apply(self, document: JSON) -> JSON:
        """Return the document with the change; unchanged parts are shared."""
        return _changed(document, self.place, self)


Changes: TypeAlias = Iterator[Change]


def replaced(place: FieldPath, value: JSON, title: str, offset: int | None = None) -> Change:
    """Return the change that gives a place another value."""
    return Change(place, title, value, True, offset=offset)


def removed(place: FieldPath, title: str) -> Change:
    """Return the change that removes a key or an element."""
    return Change(place, title)


def renamed(place: FieldPath, key: str) -> Change:
    """Return the change that gives a value another key."""
    return Change(place, f"key `{place[-1]}` becomes `{key}`", key=key)


def _changed(value: JSON, path: FieldPath, change: Change) -> JSON:
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        index = int(step)
        if rest:
            return [*value[:index], _changed(value[index], rest, change), *value[index + 1 :]]
        return [*value[:index], *([change.value] if change.has_value else ()), *value[index + 1 :]]
    if not isinstance(value, dict):
        raise TypeError(f"no place {path} in a value of JSON")
    found = {}
    for key, each in value.items():
        if key != step:
            found[key] = each
        elif rest:
            found[key] = _changed(each, rest, change)
        elif change.has_value:
            found[key] = change.value
        elif change.key:
            found[change.key] = each
    return found
