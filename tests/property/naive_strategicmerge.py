"""Strategic merge written the plain way: every element is looked for in the whole list, for every key.

The oracle of `test_strategicmerge.py`; quadratic, so that no request may ever meet it.
"""

from __future__ import annotations

from typing import Any, Final

from pyverno.errors import PatchError
from pyverno.kube.gofloat import float_text
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import MergeField, MergeTable, merge_table

__all__ = ["strategic_merge"]

_DIRECTIVE: Final = "$patch"
_REPLACE: Final = "replace"
_DELETE: Final = "delete"
_MERGE: Final = "merge"


class _Missing:
    """Nothing is here, which is not the same as null."""

    __slots__ = ()


_MISSING: Final = _Missing()


def strategic_merge(document: JSON, patch: JSON, *, group: str = "", version: str = "", kind: str = "") -> JSON:
    """The document after a strategic merge patch; None when the patch deletes it.

    `group`, `version` and `kind` name the schema; without a kind the document's own apiVersion and kind are used. Null
    deletes a field, `$patch: replace | delete | merge` directs a map, or as an element of its own a merged list.
    Elements of a patch come before those that only the document has (kustomize prepends). Raises PatchError when the
    patch and the document disagree about what is a map, a list or a scalar.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "x"}]}}
    >>> strategic_merge(pod, {"spec": {"containers": [{"name": "b"}, {"name": "a", "tty": True}]}})["spec"]
    {'containers': [{'name': 'b'}, {'name': 'a', 'image': 'x', 'tty': True}]}
    """
    table = merge_table()
    schema = table.type_of(group, version, kind) if kind else None
    try:
        merged = _Merge(table).walk(document, patch, MergeField(type=schema) if schema else None)
    except RecursionError:
        raise PatchError("the patch is nested too deeply") from None
    return None if merged is _MISSING else merged


class _Merge:
    """One merge; holds the table of merge keys."""

    __slots__ = ("table",)

    def __init__(self, table: MergeTable) -> None:
        self.table = table

    def walk(self, dest: Any, patch: Any, field: MergeField | None) -> Any:
        """The merged value, or _MISSING when nothing remains.

        kyaml walks everything, which also drops equal elements from lists that no patch mentions; here a part without
        a patch stays as it is, the same object.
        """
        if patch is _MISSING:
            return dest
        present = patch if dest is _MISSING or dest is None else dest
        if isinstance(present, dict):
            _expect(dict, "MappingNode", dest, patch)
            return self.walk_map(dest, patch, field)
        if isinstance(present, list):
            _expect(list, "SequenceNode", dest, patch)
            if field is not None and field.is_merged_list:
                return self.walk_list(dest, patch, field)
            return _MISSING if patch is None else patch
        _expect(object, "ScalarNode", dest, patch)
        if isinstance(dest, str) and isinstance(patch, bool | int | float):
            # COMPAT: kyaml keeps the quotes of the value it replaces, so a number over text becomes text.
            return _text(patch)
        return _MISSING if patch is None else patch

    # ------------------------------------------------------------------------------------------------------- maps

    def walk_map(self, dest: Any, patch: Any, field: MergeField | None) -> Any:
        if patch is None:
            return _MISSING
        is_new = dest is _MISSING or dest is None or dest is patch
        directive, changes = _map_directive(patch, lenient=dest is _MISSING or dest is None)
        if directive == _DELETE:
            return _MISSING
        # A new map is merged with itself, which removes its nulls and directives.
        before: JSONObject = changes if is_new or directive == _REPLACE else dest
        schema = self.schema_of(field, before, changes)
        result = dict(before)
        for key in sorted(changes):
            old = before.get(key, _MISSING)
            value = self.walk(old, changes[key], self.table.field(schema, key) if schema else None)
            if value is _MISSING:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def schema_of(self, field: MergeField | None, *sources: JSONObject) -> str | None:
        """The type of a map: from the schema of its field, else from the map's own kind (embedded resources)."""
        if field is not None:
            return field.type
        for source in sources:
            kind, api_version = source.get("kind"), source.get("apiVersion")
            if isinstance(kind, str) and isinstance(api_version, str) and kind and api_version:
                group, _, version = api_version.rpartition("/")
                name = self.table.type_of(group, version, kind)
                if name:
                    return name
        return None

    # ------------------------------------------------------------------------------------------------------ lists

    def walk_list(self, dest: Any, patch: Any, field: MergeField) -> Any:
        if patch is None:
            return _MISSING
        # kyaml leaves a directive in place when the document has no such list; here it never reaches the result.
        directive, changes = _list_directive(patch)
        if directive == _DELETE:
            return _MISSING
        is_new = dest is _MISSING or dest is None or dest is patch
        before: list[JSON] = changes if is_new or directive == _REPLACE else dest
        return _ListMerge(self, before, changes, field).run()


def _expect(kind: type, name: str, *values: Any) -> None:
    for value in values:
        if value is _MISSING or value is None:
            continue
        fits = isinstance(value, kind) if kind is not object else not isinstance(value, dict | list)
        if not fits:
            got = (
                "MappingNode"
                if isinstance(value, dict)
                else "SequenceNode"
                if isinstance(value, list)
                else "ScalarNode"
            )
            raise PatchError(f"wrong node kind: expected {name} but got {got}")


def _map_directive(patch: JSONObject, *, lenient: bool) -> tuple[str, JSONObject]:
    """The `$patch` of a map and the map without it; on new content (`lenient`) an unknown one is plain data."""
    value = patch.get(_DIRECTIVE, _MISSING)
    if value is _MISSING or value is None:
        return _MERGE, patch
    directive = _text(value)
    if directive in (_REPLACE, _DELETE, _MERGE):
        return directive, {key: item for key, item in patch.items() if key != _DIRECTIVE}
    if lenient:
        return _MERGE, patch
    raise PatchError(f"unknown patch strategy '{directive}'")


def _list_directive(patch: list[JSON]) -> tuple[str, list[JSON]]:
    """The `$patch` of a list: the first element that has one and nothing else."""
    holder = next((item for item in patch if isinstance(item, dict) and item.get(_DIRECTIVE) is not None), None)
    if holder is None or len(holder) > 1:
        return _MERGE, patch
    directive = _text(holder[_DIRECTIVE])
    if directive not in (_REPLACE, _DELETE, _MERGE):
        raise PatchError(f"unknown patch strategy '{directive}'")
    rest = [
        item
        for item in patch
        if item is not None and item != {} and not (isinstance(item, dict) and item.get(_DIRECTIVE) == directive)
    ]
    return directive, rest


def _text(value: JSON) -> str:
    """A scalar as YAML text, by which kyaml compares merge keys; nothing for collections."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    return str(value) if isinstance(value, int) else ""


class _ListMerge:
    """Merges one list by its keys, or by value when it has none (kyaml: walkAssociativeSequence)."""

    __slots__ = ("before", "changes", "element", "is_same", "keys", "merge")

    def __init__(self, merge: _Merge, before: list[JSON], changes: list[JSON], field: MergeField) -> None:
        self.merge = merge
        self.is_same = before is changes
        self.before = list(before)
        self.changes = self.before if self.is_same else list(changes)
        self.keys = list(field.keys) or [""]
        self.element = MergeField(type=field.type)

    def run(self) -> list[JSON]:
        rows = self.rows()
        if not rows:
            return self.before
        if len(self.keys) > 1:
            _complete(rows)
        merged: list[JSON] = []
        keys: list[str] = []
        for row in rows:
            keys, values = _used_keys(self.keys, rows, row)
            self.merge_row(merged, keys, values)
        return _append_rest(merged, self.before, keys)

    def rows(self) -> list[list[str]]:
        """The merge key's values of every element, those of the patch first, each once."""
        rows: list[list[str]] = []
        for source in (self.changes, self.before):
            for item in source:
                row = [_text(item)] if self.keys == [""] else [_key_text(item, key) for key in self.keys]
                if row not in rows:
                    rows.append(row)
        return rows

    def merge_row(self, merged: list[JSON], keys: list[str], values: list[str]) -> None:
        at = _find(self.before, keys, values)
        change_at = _find(self.changes, keys, values)
        old = self.before[at] if at is not None else _MISSING
        change = self.changes[change_at] if change_at is not None else _MISSING
        value = self.merge.walk(old, change, self.element)
        if value is _MISSING or value is None or value == {}:
            self.before[:] = _set(self.before, keys, values, _MISSING)
            return
        if isinstance(value, dict):
            absent = {key: text for key, text in zip(keys, values, strict=True) if key not in value and text}
            value = {**value, **absent} if absent else value
        if at is not None and not _is_replacement(change):
            self.before[at] = value
        elif change_at is not None:
            self.changes[change_at] = value
        merged[:] = _set(merged, keys, values, value)


def _is_replacement(change: Any) -> bool:
    # COMPAT: the document's own element comes back when one element says `$patch: replace` (kyaml, prepending).
    return isinstance(change, dict) and change.get(_DIRECTIVE) == _REPLACE


def _key_text(item: JSON, key: str) -> str:
    value = item.get(key) if isinstance(item, dict) else None
    return "" if value is None else _text(value)


def _complete(rows: list[list[str]]) -> None:
    """Rows that agree where both have a value count as the same element: 80 and 80/TCP."""
    for i in range(len(rows)):
        for j in range(len(rows)):
            joined = _join(rows[i], rows[j])
            if joined is not None:
                rows[i] = rows[j] = joined


def _join(left: list[str], right: list[str]) -> list[str] | None:
    joined: list[str] = []
    agrees = False
    for a, b in zip(left, right, strict=True):
        if a != b and a and b:
            return None
        agrees = agrees or a == b
        joined.append(a or b)
    return joined if agrees else None


def _used_keys(keys: list[str], rows: list[list[str]], row: list[str]) -> tuple[list[str], list[str]]:
    """The keys that any element of the list has, and the row's values for them."""
    used = [index for index in range(len(keys)) if any(other[index] for other in rows)]
    if not used:
        return keys, row
    return [keys[index] for index in used], [row[index] for index in used]


def _find(items: list[JSON], keys: list[str], values: list[str]) -> int | None:
    """Return the index of the element with these key values; keys without a value count only if all are without."""
    used = [(key, value) for key, value in zip(keys, values, strict=True) if value]
    if used:
        keys, values = [key for key, _ in used], [value for _, value in used]
    return next((index for index, item in enumerate(items) if _matches(item, keys, values)), None)


def _matches(item: JSON, keys: list[str], values: list[str]) -> bool:
    if keys[0] == "":
        return not isinstance(item, dict | list) and _text(item) == values[0]
    if not isinstance(item, dict):
        return False
    return all(
        key in item and (not value or _text(item[key]) == value) for key, value in zip(keys, values, strict=False)
    )


def _set(items: list[JSON], keys: list[str], values: list[str], value: Any) -> list[JSON]:
    """The list with `value` in place of the elements that match, or behind them all; without them for _MISSING."""
    result: list[JSON] = []
    found = False
    for item in items:
        if item is None or item == {}:
            continue
        if not _matches(item, keys, values):
            result.append(item)
            continue
        found = True
        if value is not _MISSING:
            result.append(value)
    if not found and value is not _MISSING:
        result.append(value)
    return result


def _append_rest(merged: list[JSON], before: list[JSON], keys: list[str]) -> list[JSON]:
    """The document's elements at their place among the merged ones, or behind them."""
    for item in before:
        if keys[0] == "":
            merged = _set(merged, keys, [_text(item)], item)
            continue
        values = [_text(item[key]) for key in keys if isinstance(item, dict) and key in item]
        if not values:
            # kyaml loses the list here; an element without its key is kept.
            merged.append(item)
            continue
        if len(keys) > 1:
            merged = _set(merged, keys, values, _MISSING)
        merged = _set(merged, keys, values, item)
    return merged
