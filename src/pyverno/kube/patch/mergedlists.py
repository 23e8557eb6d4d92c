"""Lists that merge by keys, or by value, as kustomize's strategic merge does it (kyaml: walkAssociativeSequence).

Elements are found by an index over the texts of their keys, so that a merge takes time linear in both lists, whatever
duplicates, gaps and directives they hold. The caller merges two elements that belong together (`strategicmerge`). The
given lists never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from pyverno.kube.gofloat import float_text
from pyverno.kube.json import JSON
from pyverno.kube.meter import Meter
from pyverno.kube.patch.mergedrows import Row, complete_rows

__all__ = ["MISSING", "MergeMemory", "Missing", "merge_lists", "merge_text"]

_DIRECTIVE: Final = "$patch"
_REPLACE: Final = "replace"
_BY_VALUE: Final = ("",)
_NAMES_PER_STEP: Final = 8
"""Elements of plain lists (all named, no name twice) that cost one step; others cost several steps each."""
_STEPS_PER_ELEMENT: Final = 8
_COPIED_PER_STEP: Final = 32


class Missing:
    """The type of a missing value, which is not null."""

    __slots__ = ()


MISSING: Final = Missing()
"""The only value of `Missing`."""

MergeElements: TypeAlias = Callable[[Any, Any], Any]
"""Merges an element of the document with one of the patch, either of them MISSING; MISSING when nothing remains."""

_Shape: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Keys that an element must have, and those of them whose texts must be the wanted ones."""


def merge_text(value: JSON) -> str:
    """Return a scalar as YAML text, by which kyaml compares merge keys; nothing for collections."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    return str(value) if isinstance(value, int) else ""


class MergeMemory:
    """The names in lists that merges made, for the merges of the same document that follow.

    Only the last version of a list is kept. A memory must not outlive the work on one document.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # By identity; kept with the list, so that no other list takes over its id.
        self._known: dict[int, tuple[list[JSON], str, list[str]]] = {}

    def take(self, items: list[JSON], key: str) -> list[str] | None:
        """Return the names of a list that a merge made, each name once, and forget them."""
        found = self._known.pop(id(items), None)
        return found[2] if found is not None and found[0] is items and found[1] == key else None

    def keep(self, items: list[JSON], key: str, names: list[str]) -> None:
        """Remember the names of a list, each of which occurs once."""
        self._known[id(items)] = items, key, names


def merge_lists(
    before: list[JSON],
    changes: list[JSON],
    keys: Sequence[str],
    merge: MergeElements,
    *,
    meter: Meter,
    memory: MergeMemory | None = None,
) -> list[JSON]:
    """Return the merged list: elements of `changes` first, then those that only `before` has.

    `keys` are the merge keys, none for a list that merges by value. `before` is `changes` itself where a document has
    no such list.
    """
    if (
        len(keys) == 1
        and (merged := _merge_named(before, changes, keys[0], merge, meter=meter, memory=memory)) is not None
    ):
        return merged
    meter.charge_steps(_STEPS_PER_ELEMENT * (len(before) + len(changes)))
    return _ListMerge(before, changes, tuple(keys) or _BY_VALUE, merge).run()


# ---------------------------------------------------------------------------------------------------- plain lists


def _merge_named(
    before: list[JSON],
    changes: list[JSON],
    key: str,
    merge: MergeElements,
    *,
    meter: Meter,
    memory: MergeMemory | None,
) -> list[JSON] | None:
    """Merge lists whose elements all have names, each name once in either list; None for any other list.

    Elements that the patch does not name stay as they are, which is the result of `_ListMerge` for such lists.
    """
    meter.charge_steps(1 + len(changes) // _NAMES_PER_STEP)
    names = _unique_names(changes, key)
    if names is None:
        return None
    if before is changes:
        return [value for value in (merge(item, item) for item in changes) if not _is_nothing(value)]
    if memory is not None and len(changes) == 1:
        return _merge_one(before, changes[0], key, merge, meter=meter, memory=memory)
    meter.charge_steps(1 + len(before) // _NAMES_PER_STEP)
    had = _unique_names(before, key)
    if had is None:
        return None
    places = dict(zip(had, range(len(had)), strict=True))
    named: set[int] = set()
    merged: list[JSON] = []
    for name, change in zip(names, changes, strict=True):
        place = places.get(name)
        old = MISSING if place is None else before[place]
        value = merge(old, change)
        if place is not None:
            named.add(place)
        if not _is_nothing(value):
            merged.append(value if place is None or not _is_replacement(change) else old)
    return [*merged, *(item for place, item in enumerate(before) if place not in named)]


def _merge_one(
    before: list[JSON],
    change: JSON,
    key: str,
    merge: MergeElements,
    *,
    meter: Meter,
    memory: MergeMemory,
) -> list[JSON] | None:
    """Merge one element, as each patch of a foreach does; the others cost no more than a copy of the list."""
    had = memory.take(before, key)
    if had is None:
        meter.charge_steps(1 + len(before) // _NAMES_PER_STEP)
        had = _unique_names(before, key)
        if had is None:
            return None
    meter.charge_steps(1 + len(before) // _COPIED_PER_STEP)
    name = change[key]
    place = had.index(name) if name in had else None
    old = MISSING if place is None else before[place]
    value = merge(old, change)
    merged, names = [*before], [*had]
    if place is not None:
        del merged[place], names[place]
    if not _is_nothing(value):
        merged.insert(0, value if place is None or not _is_replacement(change) else old)
        names.insert(0, name)
    memory.keep(merged, key, names)
    return merged


def _unique_names(items: list[JSON], key: str) -> list[str] | None:
    try:
        names = [item[key] for item in items]
    except (KeyError, TypeError, IndexError):
        return None
    distinct = {*map(type, names)}
    if distinct - {str} or "" in names or len({*names}) != len(names):
        return None
    return names


# ------------------------------------------------------------------------------------------------------ all lists


class _ListMerge:
    """Merges one list by its keys, or by value when it has none."""

    __slots__ = ("before", "changes", "keys", "merge")

    def __init__(self, before: list[JSON], changes: list[JSON], keys: tuple[str, ...], merge: MergeElements) -> None:
        self.before = _Cells(before)
        self.changes = self.before if before is changes else _Cells(changes)
        self.keys = keys
        self.merge = merge

    def run(self) -> list[JSON]:
        rows = self.rows()
        if not rows:
            return []
        if len(self.keys) > 1:
            rows = complete_rows(rows)
        # The keys that any element has: the others do not count.
        used = [at for at in range(len(self.keys)) if any(row[at] for row in rows)] or [*range(len(self.keys))]
        keys = tuple(self.keys[at] for at in used)
        merged = _Cells([])
        for row in rows:
            self.merge_row(merged, keys, tuple(row[at] for at in used))
        _append_rest(merged, self.before.items(), keys)
        return [*merged.items()]

    def rows(self) -> list[Row]:
        """Return the merge key's texts of every element, those of the patch first, each once."""
        keys = self.keys
        sources = (self.changes,) if self.changes is self.before else (self.changes, self.before)
        items = (item for source in sources for item in source.items())
        if keys == _BY_VALUE:
            return [*dict.fromkeys((merge_text(item),) for item in items)]
        return [*dict.fromkeys(tuple(_key_text(item, key) for key in keys) for item in items)]

    def merge_row(self, merged: _Cells, keys: tuple[str, ...], texts: Row) -> None:
        at = self.before.first(keys, texts)
        change_at = self.changes.first(keys, texts)
        old = self.before.values[at] if at is not None else MISSING
        change = self.changes.values[change_at] if change_at is not None else MISSING
        value = self.merge(old, change)
        if _is_nothing(value):
            self.before.assign(keys, texts, MISSING)
            return
        if isinstance(value, dict):
            absent = {key: text for key, text in zip(keys, texts, strict=True) if key not in value and text}
            value = {**value, **absent} if absent else value
        if at is not None and not _is_replacement(change):
            self.before.put(at, value)
        elif change_at is not None:
            self.changes.put(change_at, value)
        merged.assign(keys, texts, value)


def _append_rest(merged: _Cells, before: Iterator[JSON], keys: tuple[str, ...]) -> None:
    """Put the document's elements at their place among the merged ones, or behind them."""
    for item in before:
        if keys == _BY_VALUE:
            merged.assign(keys, (merge_text(item),), item)
            continue
        texts = tuple(merge_text(item[key]) for key in keys if isinstance(item, dict) and key in item)
        if not texts:
            # kyaml loses the list here; an element without its key is kept.
            merged.append(item)
            continue
        if len(keys) > 1:
            merged.assign(keys, texts, MISSING)
        merged.assign(keys, texts, item)


def _is_replacement(change: Any) -> bool:
    # COMPAT: the document's own element comes back when one element has `$patch: replace` (kyaml, prepending).
    return isinstance(change, dict) and change.get(_DIRECTIVE) == _REPLACE


def _is_nothing(value: Any) -> bool:
    return value is MISSING or value is None or value == {}


def _key_text(item: JSON, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return "" if value is None else merge_text(value)


# -------------------------------------------------------------------------------------------------- index of a list


class _Cells:
    """A list whose elements are found, replaced and removed by the texts of their keys.

    Elements are in cells. Elements that were replaced together hold the same value from then on and share one cell,
    so that the next replacement of them all is one step: each cell is touched once for each time that it is written.
    """

    __slots__ = ("empty", "indexes", "owner", "values")

    def __init__(self, items: list[JSON]) -> None:
        self.values: list[Any] = list(items)
        """The value of each cell; MISSING once it is removed or another cell took it over."""
        self.owner = [*range(len(items))]
        """The cell that holds a cell's value."""
        self.empty = [at for at, item in enumerate(items) if item is None or item == {}]
        self.indexes: dict[_Shape, dict[Row, list[int]]] = {}

    def items(self) -> Iterator[JSON]:
        """Yield the elements in order."""
        for at in range(len(self.values)):
            value = self.values[self.find_owner(at)]
            if value is not MISSING:
                yield value

    def find_owner(self, at: int) -> int:
        owner = self.owner
        while owner[at] != at:
            owner[at] = owner[owner[at]]
            at = owner[at]
        return at

    def first(self, keys: tuple[str, ...], texts: Row) -> int | None:
        """Return the first cell with these texts; keys without a text do not count when others have one."""
        used = tuple(key for key, text in zip(keys, texts, strict=True) if text)
        shape = (used, used) if used and keys != _BY_VALUE else _shape(keys, texts)
        found = self.index(shape).get(_texts_for(shape, keys, texts))
        while found:
            if self.fits(found[0], shape, keys, texts):
                return found[0]
            heappop(found)
        return None

    def assign(self, keys: tuple[str, ...], texts: Row, value: Any) -> None:
        """Put `value` in place of all elements with these texts, or behind all; MISSING removes them.

        Empty elements go at the same time.
        """
        for at in self.empty:
            if self.values[at] is None or self.values[at] == {}:
                self.values[at] = MISSING
        self.empty.clear()
        shape = _shape(keys, texts)
        index = self.index(shape)
        found = index.pop(_texts_for(shape, keys, texts), None) or ()
        cells = [at for at in dict.fromkeys(found) if self.fits(at, shape, keys, texts)]
        for at in cells:
            self.values[at] = MISSING
            self.owner[at] = cells[0]
        if value is MISSING:
            return
        if cells:
            self.put(cells[0], value)
        else:
            self.append(value)

    def append(self, value: JSON) -> None:
        """Put an element behind all others."""
        self.owner.append(len(self.values))
        self.values.append(MISSING)
        self.put(len(self.values) - 1, value)

    def put(self, at: int, value: JSON) -> None:
        """Write one cell."""
        self.values[at] = value
        if value is None or value == {}:
            self.empty.append(at)
        for shape, index in self.indexes.items():
            row = _row(value, shape)
            if row is not None:
                heappush(index.setdefault(row, []), at)

    def fits(self, at: int, shape: _Shape, keys: tuple[str, ...], texts: Row) -> bool:
        """Return whether an entry of an index is still true."""
        return self.values[at] is not MISSING and _row(self.values[at], shape) == _texts_for(shape, keys, texts)

    def index(self, shape: _Shape) -> dict[Row, list[int]]:
        """Return the cells by the texts of a shape: heaps, whose entries may be outdated."""
        index = self.indexes.get(shape)
        if index is None:
            index = self.indexes[shape] = {}
            for at, value in enumerate(self.values):
                row = None if value is MISSING else _row(value, shape)
                if row is not None:
                    index.setdefault(row, []).append(at)
        return index


def _shape(keys: tuple[str, ...], texts: Row) -> _Shape:
    if keys == _BY_VALUE:
        return keys, keys
    # COMPAT: an element without its first key is compared by the text of its second, as kyaml does
    pairs = tuple(zip(keys, texts, strict=False))
    return tuple(key for key, _ in pairs), tuple(key for key, text in pairs if text)


def _texts_for(shape: _Shape, keys: tuple[str, ...], texts: Row) -> Row:
    return texts if shape[1] == keys else tuple(text for text in texts if text)


def _row(item: JSON, shape: _Shape) -> Row | None:
    """Return the texts of an element; None when it has not all keys of the shape."""
    required, texts = shape
    if required == _BY_VALUE:
        return None if isinstance(item, (dict, list)) else (merge_text(item),)
    if not isinstance(item, dict):
        return None
    for key in required:
        if key not in item:
            return None
    return tuple(merge_text(item[key]) for key in texts)
