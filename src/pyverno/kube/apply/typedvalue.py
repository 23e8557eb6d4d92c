"""Values seen through a schema tree: which fields they have, how two differ, one laid over another, parts taken out.

The algebra of structured-merge-diff. Values are never changed; results share structure with what they came from. Values
nested too deeply raise RecursionError. This module must never know who owns a field (see `serverside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, TypeAlias

from pyverno.errors import PatchError
from pyverno.kube.apply.fieldset import FieldPath, FieldSet, field_step, key_step, path_text, value_step
from pyverno.kube.apply.schematree import ANYTHING, ListType, MapType, SchemaTree
from pyverno.kube.apply.typedcheck import shown
from pyverno.kube.json import JSON, JSONObject, encode, equal
from pyverno.value import dataclass

__all__ = ["Comparison", "compare", "fields_of", "merge", "problems", "taken_out", "with_named_parents"]


class _Missing(Enum):
    """What stands for a field that is not there, which null is not."""

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
    steps = [_step(item, form) for item in value]
    for step, item in zip(steps, value, strict=True):
        below = (*path, step)
        if steps.count(step) == 1:
            _collect(item, form.element, below, found)
        found.append(below)


def _step(item: JSON, form: ListType) -> str:
    """Return the step to an item; raises PatchError for one that can not be told from the others."""
    if not form.keys:
        if isinstance(item, (dict, list)) or item is None:
            what = "an explicit null" if item is None else "a map type" if isinstance(item, dict) else "a list"
            raise PatchError(f"associative list without keys has an element that's {what}")
        return value_step(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise PatchError(f"associative list with keys may not have {what}")
    keys = {}
    for key in form.keys:
        value = item.get(key, form.defaults.get(key, _MISSING))
        if value is not _MISSING:
            keys[key] = value
    if not keys:
        raise PatchError(
            f"associative list with keys has an element that omits all key fields [{' '.join(map(encode, form.keys))}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_step(keys)


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
    """Return all that lies below a value: what is added with it."""
    shape = type.shape(value)
    if shape == "map" and type.map is not None and not type.map.is_atomic and isinstance(value, dict):
        below = {field_step(name): _parts(item, type.map.child(name) or ANYTHING) for name, item in value.items()}
    elif shape == "list" and type.list is not None and not type.list.is_atomic and isinstance(value, list):
        element = type.list.element
        below = {
            step: _parts(items[0], element) if len(items) == 1 else _NOTHING
            for step, items in _grouped(value, type.list).items()
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
    """What lies below those that were added."""

    def visit(self, before: _Value, after: _Value, type: SchemaTree, path: FieldPath) -> None:
        if before is after:
            return
        if len(path) == 1 and equal(before, after):
            # most writes leave most of an object alone, and to see that is quicker than to walk through it
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
            self._items(_grouped(first, type.list), _grouped(second, type.list), type.list, path)
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


def _grouped(items: list[JSON], form: ListType) -> dict[str, list[JSON]]:
    grouped: dict[str, list[JSON]] = {}
    for item in items:
        grouped.setdefault(_step(item, form), []).append(item)
    return grouped


def _as_map(value: _Value) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _as_list(value: _Value) -> list[JSON]:
    return value if isinstance(value, list) else []


# ── One value laid over another ──────────────────────────────────────────────────────────────────────────────────────


def merge(live: JSON, config: JSON, type: SchemaTree) -> JSON:
    """Lay a configuration over a value: its leaves replace, everything else stays, lists keep the order of both.

    >>> merge({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}, ANYTHING)
    {'a': {'b': 1, 'd': 2}, 'c': [2]}
    """
    shape = type.shape(config if config is not None else live)
    if shape == "map" and type.map is not None and not type.map.is_atomic:
        old, new = _as_map(live), _as_map(config)
        if not old and not new:
            return config
        merged = dict(old)
        for name, value in new.items():
            merged[name] = merge(old[name], value, type.map.child(name) or ANYTHING) if name in old else value
        return merged
    if shape == "list" and type.list is not None and not type.list.is_atomic:
        first, second = _as_list(live), _as_list(config)
        return _merged_items(first, second, type.list) if first or second else config
    return config


def _merged_items(live: list[JSON], config: list[JSON], form: ListType) -> list[JSON]:
    """Merge two lists; shared items stand in the order of the configuration, others where they stood.

    An item that the live list holds twice is replaced, since nothing tells which of the two is meant.
    """
    before = [_step(item, form) for item in live]
    after = [_step(item, form) for item in config]
    old = {step: item for step, item in zip(before, live, strict=True) if before.count(step) == 1}
    new = dict(zip(after, config, strict=True))
    shared = [step for step in after if step in set(before)]
    result: list[JSON] = []
    done: set[str] = set()
    waiting = iter(after)

    def take(until: str | None) -> Iterator[JSON]:
        """Give merged items of the configuration up to and with one of them, or all."""
        for step in waiting:
            done.add(step)
            yield merge(old[step], new[step], form.element) if step in old else new[step]
            if step == until:
                return

    turn = 0
    for step, item in zip(before, live, strict=True):
        if step not in new:
            result.append(item)
        elif step not in done and step == shared[turn]:
            result.extend(take(step))
            while turn < len(shared) and shared[turn] in done:
                turn += 1
    result.extend(take(None))
    return result


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
        step = _step(item, form)
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


# ── What does not fit a type ─────────────────────────────────────────────────────────────────────────────────────────

_NUMERIC = "numeric (int or float)"
_SCALAR_CHECKS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "numeric": ((int, float), _NUMERIC),
    "string": ((str,), "string"),
    "boolean": ((bool,), "boolean"),
    "untyped": ((str, int, float, bool), "any scalar"),
}


def problems(value: JSON, type: SchemaTree) -> list[str]:
    """Return why a value is not of its type: `.spec.x: field not declared in schema`."""
    found: list[str] = []
    _check(value, type, (), found)
    return found


def _check(value: JSON, type: SchemaTree, path: FieldPath, found: list[str]) -> None:
    match type.shape(value):
        case "map" if type.map is not None:
            _check_map(value, type.map, path, found)
        case "list" if type.list is not None:
            _check_list(value, type.list, path, found)
        case _ if type.scalar is not None and value is not None:
            kinds, wanted = _SCALAR_CHECKS[type.scalar]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                found.append(f"{path_text(path)}: expected {wanted}, got {_SHOWN.get(wanted, shown)(value)}")


def _check_map(value: JSON, shape: MapType, path: FieldPath, found: list[str]) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        found.append(f"{path_text(path)}: expected map, got {shown(value)}")
        return
    for name in sorted(value):
        below = (*path, field_step(name))
        child = shape.child(name)
        if child is None:
            found.append(f"{path_text(below)}: field not declared in schema")
            return
        _check(value[name], child, below, found)


def _check_list(value: JSON, form: ListType, path: FieldPath, found: list[str]) -> None:
    if value is None:
        return
    if not isinstance(value, list):
        found.append(f"{path_text(path)}: expected list, got {shown(value)}")
        return
    seen: set[str] = set()
    for place, item in enumerate(value):
        step = f"i:{place}"
        if not form.is_atomic:
            try:
                step = _step(item, form)
            except PatchError as error:
                found.append(f"{path_text(path)}: element {place}: {error}")
                return
            if step in seen:
                found.append(f"{path_text(path)}: duplicate entries for key {path_text((step,))}")
            seen.add(step)
        _check(item, form.element, (*path, step), found)


_SHOWN: Mapping[str, Callable[[JSON], str]] = {
    _NUMERIC: lambda value: "bool" if isinstance(value, bool) else "string",
    "string": lambda value: f"&value.valueUnstructured{{Value:{encode(value)}}}",
}
"""Upstream shows the values that do not fit in several ways."""
