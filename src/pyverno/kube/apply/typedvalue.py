"""Fields of values by a schema tree: which a value has, in which two values differ, a value without some of them.

Follows structured-merge-diff. Values are never changed; results share structure with their input. Values nested too
deeply raise RecursionError.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, TypeAlias

from pyverno.kube.apply.fieldset import FieldPath, FieldSet, field_step
from pyverno.kube.apply.schematree import ANYTHING, ListType, MapType, SchemaTree
from pyverno.kube.json import JSON, JSONObject, equal
from pyverno.value import dataclass

__all__ = ["Comparison", "compare", "fields_of", "taken_out", "with_named_parents"]


class _Missing(Enum):
    """The type of a missing field, which is not null."""

    MISSING = 0


_MISSING: Final = _Missing.MISSING
_Value: TypeAlias = JSON


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields in which a later value differs from an earlier one."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    def without(self, ignored: FieldSet) -> Comparison:
        """Return the differences outside of some fields."""
        if not ignored:
            return self
        return Comparison(self.removed.without(ignored), self.modified.without(ignored), self.added.without(ignored))


# ── Which fields a value has ─────────────────────────────────────────────────────────────────────────────────────────


def fields_of(value: JSON, type: SchemaTree) -> FieldSet:
    """Return the fields that a configuration sets: leaves, items of lists, entries of maps, and what is empty.

    >>> fields_of({"a": {"b": 1}, "c": [1, 2]}, ANYTHING).to_json()
    {'f:a': {'.': {}, 'f:b': {}}, 'f:c': {}}
    """
    found: list[FieldPath] = []
    _collect(value, type, (), found)
    return FieldSet.of(found)


def _collect(value: JSON, type: SchemaTree, path: FieldPath, found: list[FieldPath]) -> None:
    match type.shape(value):
        case "map":
            shape = type.map
            if shape is None or shape.is_atomic:
                found.append(path)
            elif isinstance(value, dict):
                _collect_map(value, shape, path, found)
        case "list":
            form = type.list
            if form is None or form.is_atomic:
                found.append(path)
            elif isinstance(value, list):
                _collect_list(value, form, path, found)
        case _:
            found.append(path)


def _collect_map(value: JSONObject, shape: MapType, path: FieldPath, found: list[FieldPath]) -> None:
    for name, item in value.items():
        named = shape.field(name)
        below = (*path, field_step(name))
        _collect(item, named or shape.element or ANYTHING, below, found)
        if named is None or item is None or item == {}:
            found.append(below)


def _collect_list(value: list[JSON], form: ListType, path: FieldPath, found: list[FieldPath]) -> None:
    steps = [form.step(item) for item in value]
    count = Counter(steps)
    for step, item in zip(steps, value, strict=True):
        below = (*path, step)
        if count[step] == 1:
            _collect(item, form.element, below, found)
        found.append(below)


# ── How two values differ ────────────────────────────────────────────────────────────────────────────────────────────


def compare(before: JSON, after: JSON, type: SchemaTree) -> Comparison:
    """Return the fields in which two values of a type differ.

    >>> compare({"a": 1, "b": [1]}, {"b": [2], "c": {}}, ANYTHING).modified.to_json()
    {'f:b': {}}
    """
    walk = _Walk([], [], [], [])
    walk.visit(before, after, type, ())
    added = FieldSet.of(walk.added)
    for path, below in walk.grown:
        for step in reversed(path):
            below = FieldSet(frozenset(), {step: below})  # noqa: PLW2901  # one step further up
        added = added.union(below)
    return Comparison(FieldSet.of(walk.removed), FieldSet.of(walk.modified), added)


def _parts(value: JSON, type: SchemaTree) -> FieldSet:
    """Return all that is below a value: what is added with it."""
    shape = type.shape(value)
    if shape == "map" and type.map is not None and not type.map.is_atomic and isinstance(value, dict):
        below = {field_step(name): _parts(item, type.map.child(name) or ANYTHING) for name, item in value.items()}
    elif shape == "list" and type.list is not None and not type.list.is_atomic and isinstance(value, list):
        element = type.list.element
        below = {
            step: _parts(items[0], element) if len(items) == 1 else _NOTHING
            for step, items in _group(value, type.list).items()
        }
    else:
        return _NOTHING
    return FieldSet(frozenset(below), {step: fields for step, fields in below.items() if fields})


_NOTHING = FieldSet()


@dataclass(frozen=True, slots=True)
class _Walk:
    removed: list[FieldPath]
    modified: list[FieldPath]
    added: list[FieldPath]
    grown: list[tuple[FieldPath, FieldSet]]
    """What is below those that were added."""

    def visit(self, before: _Value, after: _Value, type: SchemaTree, path: FieldPath) -> None:
        if before is after:
            return
        if len(path) == 1 and equal(before, after):
            # most writes change little of an object, and a comparison is quicker than a walk through equal parts
            return
        if before is _MISSING and after is not _MISSING:
            self.added.append(path)
            below = _parts(after, type)
            if below:
                self.grown.append((path, below))
            return
        shape = type.shape(before if after is _MISSING else after)
        has_parts = self._descended(shape, before, after, type, path)
        if before is not _MISSING and after is not _MISSING:
            other = type.shape(before)
            if other != shape:
                has_parts = self._descended(other, before, after, type, path) and has_parts
        if not has_parts:
            self._leaf(before, after, path)
        elif after is _MISSING:
            self.removed.append(path)

    def _leaf(self, before: _Value, after: _Value, path: FieldPath) -> None:
        if after is _MISSING:
            self.removed.append(path)
        elif not (equal(before, after) if before.__class__ is not str else before == after):
            self.modified.append(path)

    def _descended(self, shape: str, before: _Value, after: _Value, type: SchemaTree, path: FieldPath) -> bool:
        """Compare the parts of a value; False when it has none and counts as a whole."""
        if shape == "map" and type.map is not None and not type.map.is_atomic:
            old, new = _as_map(before), _as_map(after)
            if not old and not new:
                return False
            for name in {**old, **new}:
                child = type.map.child(name) or ANYTHING
                self.visit(old.get(name, _MISSING), new.get(name, _MISSING), child, (*path, field_step(name)))
            return True
        if shape == "list" and type.list is not None and not type.list.is_atomic:
            first, second = _as_list(before), _as_list(after)
            if not first and not second:
                return False
            self._items(_group(first, type.list), _group(second, type.list), type.list, path)
            return True
        return False

    def _items(
        self, before: Mapping[str, list[JSON]], after: Mapping[str, list[JSON]], form: ListType, path: FieldPath
    ) -> None:
        """Compare lists item by item; items that occur twice count as one value."""
        for step in {**before, **after}:
            old, new = before.get(step, []), after.get(step, [])
            below = (*path, step)
            if len(old) <= 1 and len(new) <= 1:
                self.visit(old[0] if old else _MISSING, new[0] if new else _MISSING, form.element, below)
            elif len(old) > 1 and len(new) > 1:
                if not equal(old, new):
                    self.modified.append(below)
            elif len(old) > 1:
                if new:
                    self.visit(_MISSING, new[0], form.element, below)
                self.removed.append(below)
            else:
                if old:
                    self.visit(old[0], _MISSING, form.element, below)
                self.added.append(below)


def _group(items: list[JSON], form: ListType) -> dict[str, list[JSON]]:
    grouped: dict[str, list[JSON]] = {}
    for item in items:
        grouped.setdefault(form.step(item), []).append(item)
    return grouped


def _as_map(value: _Value) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _as_list(value: _Value) -> list[JSON]:
    return value if isinstance(value, list) else []


# ── Parts taken out ──────────────────────────────────────────────────────────────────────────────────────────────────


def taken_out(value: JSON, fields: FieldSet, type: SchemaTree) -> JSON:
    """Return a value without some fields; a map or list of which nothing is left becomes null.

    >>> taken_out({"a": 1, "b": {"c": 2, "d": 3}}, FieldSet.of([("f:a",), ("f:b", "f:c")]), ANYTHING)
    {'b': {'d': 3}}
    """
    if isinstance(value, dict) and value and type.map is not None:
        if type.map.is_atomic:
            return None
        kept: JSONObject = {}
        for name, item in value.items():
            step = field_step(name)
            if step in fields.members:
                continue
            below = fields.below(step)
            kept[name] = taken_out(item, below, type.map.child(name) or ANYTHING) if below else item
        return kept or None
    if isinstance(value, list) and value and type.list is not None:
        if type.list.is_atomic:
            return None
        return list(_remaining(value, fields, type.list)) or None
    return value if not isinstance(value, (dict, list)) else None


def _remaining(items: list[JSON], fields: FieldSet, form: ListType) -> Iterator[JSON]:
    for item in items:
        step = form.step(item)
        if step not in fields.members:
            below = fields.below(step)
            yield taken_out(item, below, form.element) if below else item


def with_named_parents(fields: FieldSet, type: SchemaTree) -> FieldSet:
    """Return a set to which the named fields above its members belong as well; entries of maps and items do not."""
    members = set(fields.members)
    children: dict[str, FieldSet] = {}
    for step, below in fields.children.items():
        kind, _, name = step.partition(":")
        child: SchemaTree | None = None
        if kind == "f" and type.map is not None:
            child = type.map.child(name)
            if type.map.field(name) is not None:
                members.add(step)
        elif kind != "f" and type.list is not None:
            child = type.list.element
        children[step] = with_named_parents(below, child or ANYTHING)
    return FieldSet(frozenset(members), children)
