"""Strategic merge of a patch into a resource, with kustomize's semantics, which Kyverno's patchStrategicMerge uses.

Lists merge by the keys that Kubernetes' schemas name; lists without such keys, and all lists of unknown kinds, are
replaced. Inputs never change; the result shares every part that the patch does not touch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.meter import UNMETERED, Meter
from pyverno.kube.patch.mergedlists import MISSING, MergeMemory, merge_lists, merge_text
from pyverno.kube.schemas import MergeField, MergeTable, merge_table

__all__ = ["strategic_merge"]

_DIRECTIVE: Final = "$patch"
_REPLACE: Final = "replace"
_DELETE: Final = "delete"
_MERGE: Final = "merge"
_COPIED_PER_STEP: Final = 32


def strategic_merge(
    document: JSON,
    patch: JSON,
    *,
    group: str = "",
    version: str = "",
    kind: str = "",
    meter: Meter = UNMETERED,
    memory: MergeMemory | None = None,
    followers: Mapping[int, tuple[JSONObject, Sequence[JSON]]] | None = None,
) -> JSON:
    """The document after a strategic merge patch; None when the patch deletes it.

    `group`, `version` and `kind` name the schema; without a kind the document's own apiVersion and kind are used. Null
    deletes a field, `$patch: replace | delete | merge` directs a map, or, as a separate element, a merged list.
    Elements of a patch come before those that only the document has (kustomize prepends). Raises PatchError when the
    patch and the document disagree about what is a map, a list or a scalar. Takes time linear in the maps and lists
    that the patch mentions, and charges `meter` for them. Merges that follow each other on one document may share a
    `memory`, so that they do not look at all elements of its lists each time. `followers` are further changes of the
    item that an element of the patch changes, by the identity of that element.

    >>> pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "x"}]}}
    >>> strategic_merge(pod, {"spec": {"containers": [{"name": "b"}, {"name": "a", "tty": True}]}})["spec"]
    {'containers': [{'name': 'b'}, {'name': 'a', 'image': 'x', 'tty': True}]}
    """
    table = merge_table()
    schema = table.type_of(group, version, kind) if kind else None
    try:
        merged = _Merge(table, meter, memory, followers or {}).walk(
            document, patch, MergeField(type=schema) if schema else None
        )
    except RecursionError:
        raise PatchError("the patch is nested too deeply") from None
    return None if merged is MISSING else merged


class _Merge:
    """One merge; holds the table of merge keys."""

    __slots__ = ("followers", "memory", "meter", "table")

    def __init__(
        self,
        table: MergeTable,
        meter: Meter,
        memory: MergeMemory | None,
        followers: Mapping[int, tuple[JSONObject, Sequence[JSON]]],
    ) -> None:
        self.table = table
        self.followers = followers
        self.memory = memory
        self.meter = meter

    def walk(self, dest: Any, patch: Any, field: MergeField | None) -> Any:
        """The merged value, or MISSING when nothing remains.

        kyaml walks everything, which also drops equal elements from lists that no patch mentions; here a part without
        a patch stays as it is, the same object.
        """
        if patch is MISSING:
            return dest
        present = patch if dest is MISSING or dest is None else dest
        if isinstance(present, dict):
            _expect(dict, "MappingNode", dest, patch)
            return self.walk_map(dest, patch, field)
        if isinstance(present, list):
            _expect(list, "SequenceNode", dest, patch)
            if field is not None and field.is_merged_list:
                return self.walk_list(dest, patch, field)
            return MISSING if patch is None else self.listed(patch)
        _expect(object, "ScalarNode", dest, patch)
        if isinstance(dest, str) and isinstance(patch, bool | int | float):
            # COMPAT: kyaml keeps the quotes of the value it replaces, so a number over text becomes text.
            return merge_text(patch)
        return MISSING if patch is None else patch

    # ------------------------------------------------------------------------------------------------------- maps

    def walk_map(self, dest: Any, patch: Any, field: MergeField | None) -> Any:
        if patch is None:
            return MISSING
        is_new = dest is MISSING or dest is None or dest is patch
        directive, changes = _map_directive(patch, lenient=dest is MISSING or dest is None)
        if directive == _DELETE:
            return MISSING
        # A new map is merged with itself, which removes its nulls and directives.
        before: JSONObject = changes if is_new or directive == _REPLACE else dest
        schema = self.schema_of(field, before, changes)
        self.meter.charge_steps(1 + 2 * len(changes) + len(before) // _COPIED_PER_STEP)
        result = dict(before)
        for key in sorted(changes):
            old = before.get(key, MISSING)
            value = self.walk(old, changes[key], self.table.field(schema, key) if schema else None)
            if value is MISSING:
                result.pop(key, None)
            else:
                result[key] = value
        return result

    def schema_of(self, field: MergeField | None, *sources: JSONObject) -> str | None:
        """Return the type of a map: that of the field, else that of the embedded resource."""
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
            return MISSING
        # kyaml leaves a directive in place when the document has no such list; here it never reaches the result.
        directive, changes = _list_directive(patch)
        if directive == _DELETE:
            return MISSING
        is_new = dest is MISSING or dest is None or dest is patch
        before: list[JSON] = changes if is_new or directive == _REPLACE else dest
        element = MergeField(type=field.type)
        return merge_lists(
            before,
            changes,
            field.keys,
            lambda old, change: self.walk_element(old, change, element),
            meter=self.meter,
            memory=self.memory,
        )

    def walk_element(self, dest: Any, patch: Any, field: MergeField) -> Any:
        """The merged element, after all changes of it."""
        value = self.walk(dest, patch, field)
        _, others = self.followers.get(id(patch), (None, ()))
        for each in others:
            value = MISSING if value is MISSING else self.walk(value, each, field)
        return value

    def listed(self, patch: JSON) -> JSON:
        """A value that replaces that of the document: here followers are elements of their own."""
        if not self.followers or not isinstance(patch, dict | list):
            return patch
        if isinstance(patch, dict):
            return {key: self.listed(item) for key, item in patch.items()}
        rows = ((item, *self.followers.get(id(item), (None, ()))[1]) for item in patch)
        return [self.listed(item) for row in rows for item in row]


def _expect(kind: type, name: str, *values: Any) -> None:
    for value in values:
        if value is MISSING or value is None:
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
    value = patch.get(_DIRECTIVE, MISSING)
    if value is MISSING or value is None:
        return _MERGE, patch
    directive = merge_text(value)
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
    directive = merge_text(holder[_DIRECTIVE])
    if directive not in (_REPLACE, _DELETE, _MERGE):
        raise PatchError(f"unknown patch strategy '{directive}'")
    rest = [
        item
        for item in patch
        if item is not None and item != {} and not (isinstance(item, dict) and item.get(_DIRECTIVE) == directive)
    ]
    return directive, rest
