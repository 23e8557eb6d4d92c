"""Strategic merge patch as an API server applies it (apimachinery), with the order of lists and all its directives.

`x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of the schemas decide which lists merge, and by which
key. Kustomize's dialect, which policies use, differs (see `strategicmerge`). Inputs never change; the result shares
what the patch does not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, JSONObject, identity
from pyverno.kube.schemas import SchemaSet

__all__ = ["strategic_patch"]

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_LIST = "$deleteFromPrimitiveList/"
_NAMELESS = object()


def strategic_patch(document: JSONObject, patch: JSONObject, *, schemas: SchemaSet, definition: str) -> JSONObject:
    """Return the document after a strategic merge patch.

    `definition` names the schema of the document. New elements of merged lists come first, as in a cluster. Raises
    PatchError with apimachinery's text for a patch that cannot be applied.

    >>> from pyverno.kube.schemas import schema_set
    >>> schemas = schema_set("1.35")
    >>> pod = {"spec": {"containers": [{"name": "a", "image": "x"}]}}
    >>> patch = {"spec": {"containers": [{"name": "b"}, {"name": "a", "tty": True}]}}
    >>> strategic_patch(pod, patch, schemas=schemas, definition=schemas.kinds["", "v1", "Pod"])["spec"]
    {'containers': [{'name': 'b'}, {'name': 'a', 'image': 'x', 'tty': True}]}
    """
    try:
        return _Merge(schemas).merged_map(document, patch, schemas.definitions[definition])
    except RecursionError:
        raise PatchError("the patch is nested too deeply") from None


class _Merge:
    """One merge over the schemas of one Kubernetes version."""

    __slots__ = ("schemas",)

    def __init__(self, schemas: SchemaSet) -> None:
        self.schemas = schemas

    def merged_map(self, before: JSONObject, patch: JSONObject, schema: JSONObject) -> JSONObject:
        if _PATCH in patch:
            return _directed(patch)
        merged = _retain(before, patch)
        rest = {key: value for key, value in patch.items() if key != _RETAIN}
        self.order(merged, rest, schema)
        for written, change in rest.items():
            is_deletion = written.startswith(_DELETE_LIST)
            key = written.removeprefix(_DELETE_LIST)
            if change is None:
                merged.pop(key, None)
            elif key in merged and _is_alike(merged[key], change):
                merged[key] = self.value(merged[key], change, self.field(schema, key), is_deletion=is_deletion)
            elif not is_deletion:
                merged[key] = _fresh(change)
        return merged

    def value(self, before: JSON, change: JSON, field: JSONObject, *, is_deletion: bool) -> JSON:
        strategies = field.get("x-kubernetes-patch-strategy", "").split(",")
        if isinstance(change, dict):
            return change if "replace" in strategies else self.merged_map(before, change, self.followed(field))
        if isinstance(change, list):
            if is_deletion or "merge" in strategies:
                return self.merged_list(before, change, field, is_deletion=is_deletion)
            return change
        return change

    def merged_list(
        self, before: list[JSON], patch: list[JSON], field: JSONObject, *, is_deletion: bool = False
    ) -> list[JSON]:
        if not before and not patch:
            return before
        key: str = field.get("x-kubernetes-patch-merge-key", "")
        if not _are_maps(before, patch):
            if is_deletion:
                gone = {*map(identity, patch)}
                return [item for item in before if identity(item) not in gone]
            merged = _unique([*before, *patch])
        else:
            if not key:
                raise PatchError("cannot merge lists without merge key")
            before, patch = _without_directives(before, patch, key)
            merged = self.elements(before, patch, key, self.followed(field.get("items") or {}))
        return _in_order(merged, patch, before, key)

    def elements(self, before: list[JSON], patch: list[JSON], key: str, schema: JSONObject) -> list[JSON]:
        merged = [*before]
        places, nameless = _names(merged, key)
        for change in patch:
            wanted = identity(_merge_value(change, key))
            place = places.get(wanted, len(merged))
            if nameless is not None and nameless < place:
                _merge_value(merged[nameless], key)
            if place == len(merged):
                merged.append(_fresh(change))
                places[wanted] = place
            else:
                merged[place] = self.merged_map(merged[place], change, schema)
            if key not in merged[place] or identity(merged[place][key]) != wanted:  # null, or a map with directives
                places, nameless = _names(merged, key)
        return merged

    def order(self, merged: JSONObject, patch: JSONObject, schema: JSONObject) -> None:
        """Take the `$setElementOrder` directives out of a patch, with the lists that they order, and obey them."""
        for directive in [key for key in patch if key.startswith(_ORDER)]:
            wanted = patch.pop(directive)
            if not isinstance(wanted, list):
                raise PatchError(f"the value of {directive} must be a list")
            name = directive.removeprefix(_ORDER)
            before, change = merged.get(name), patch.pop(name, None)
            field = self.field(schema, name)
            key: str = field.get("x-kubernetes-patch-merge-key", "")
            if isinstance(change, list):
                _check_order(change, wanted, key)
                found = self.value(before, change, field, is_deletion=False) if before is not None else _fresh(change)
            elif before is not None:
                found = before
            else:
                continue
            merged[name] = _in_order(found, wanted, before or [], key)

    def field(self, schema: JSONObject, key: str) -> JSONObject:
        """Return the schema of a field of a map, with the marks of the field itself."""
        found = (schema.get("properties") or {}).get(key)
        if found is None:
            found = schema.get("additionalProperties")
        return found if isinstance(found, dict) else {}

    def followed(self, schema: JSONObject) -> JSONObject:
        name = schema.get("$ref")
        return self.schemas.definitions[name] if isinstance(name, str) else schema


def _directed(patch: JSONObject) -> JSONObject:
    match patch[_PATCH]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        case "delete":
            return {}
        case other:
            raise PatchError(f"unknown patch type: {other} in map: {patch}")


def _retain(before: JSONObject, patch: JSONObject) -> JSONObject:
    if _RETAIN not in patch:
        return dict(before)
    kept = patch[_RETAIN]
    if not isinstance(kept, list):
        raise PatchError(f"invalid patch format of {_RETAIN}: it must be a list")
    kept = {key for key in kept if isinstance(key, str)}
    if any(value is not None and key not in kept for key, value in patch.items() if not key.startswith("$")):
        raise PatchError(f"{_RETAIN} directive must contain all the fields that the patch sets")
    return {key: value for key, value in before.items() if key in kept}


def _is_alike(before: JSON, change: JSON) -> bool:
    return all(isinstance(before, kind) == isinstance(change, kind) for kind in (dict, list)) and before is not None


def _fresh(value: JSON) -> JSON:
    """Return new content without nulls and directives, however deep it is."""
    root: list[JSON] = [None]
    waiting: list[tuple[JSON, JSONObject | list[JSON], str | int]] = [(value, root, 0)]
    while waiting:
        item, container, place = waiting.pop()
        kept: JSON = item
        if isinstance(item, dict):
            kept = {key: None for key, inner in item.items() if inner is not None and not _is_directive(key)}
            waiting.extend((item[key], kept, key) for key in kept)
        elif isinstance(item, list):
            inners = [inner for inner in item if not (isinstance(inner, dict) and _PATCH in inner)]
            kept = [None] * len(inners)
            waiting.extend((inner, kept, index) for index, inner in enumerate(inners))
        container[place] = kept  # type: ignore[index]  # a key for objects, an index for lists
    return root[0]


def _is_directive(key: str) -> bool:
    return key in (_PATCH, _RETAIN) or key.startswith((_ORDER, _DELETE_LIST))


def _are_maps(before: list[JSON], patch: list[JSON]) -> bool:
    kinds = {
        "map" if isinstance(item, dict) else "list" if isinstance(item, list) else "" for item in (*before, *patch)
    }
    if "list" in kinds:
        raise PatchError("lists of lists are not supported")
    if len(kinds) > 1:
        raise PatchError("list element types are not identical")
    return "map" in kinds


def _unique(items: list[JSON]) -> list[JSON]:
    found: dict[Hashable, JSON] = {}
    for item in items:
        found.setdefault(identity(item), item)
    return [*found.values()]


def _merge_value(item: JSONObject, key: str) -> JSON:
    if key not in item:
        raise PatchError(f"map: {item} does not contain declared merge key: {key}")
    return item[key]


def _names(items: list[JSON], key: str) -> tuple[dict[Hashable, int], int | None]:
    """Return the first position of each name, and the first position without a name."""
    nameless = next((at for at, item in enumerate(items) if key not in item), None)
    return _places(identity(item[key]) if key in item else _NAMELESS for item in items), nameless


def _without_directives(before: list[JSON], patch: list[JSON], key: str) -> tuple[list[JSON], list[JSON]]:
    """Carry out the elements that hold `$patch`; return what is left of both lists."""
    changes: list[JSON] = []
    gone: set[Hashable] = set()
    is_replaced = False
    for item in patch:
        match item.get(_PATCH):
            case None:
                changes.append(item)
            case "delete":
                name = identity(_merge_value(item, key))
                if not gone:
                    for old in before:
                        _merge_value(old, key)
                gone.add(name)
            case "replace":
                is_replaced = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case other:
                raise PatchError(f"unknown patch type: {other} in map: {item}")
    if gone:
        before = [old for old in before if identity(old[key]) not in gone]
    return (changes, []) if is_replaced else (before, changes)


def _check_order(change: list[JSON], wanted: list[JSON], key: str) -> None:
    """Raise when the patch changes elements that its order does not name, or in another order."""
    identify = _identifier(key)
    order = _places(map(identify, wanted))
    places = [order.get(identify(item), -1) for item in change if not (isinstance(item, dict) and _PATCH in item)]
    if -1 in places or places != sorted(places):
        raise PatchError(
            "The order in patch list:\n%v\n doesn't match $setElementOrder list:\n%v\n".replace("%v", "{}").format(
                change, wanted
            )
        )


def _identifier(key: str) -> Callable[[JSON], Hashable]:
    return lambda item: identity(_merge_value(item, key) if key and isinstance(item, dict) else item)


def _places(order: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return the first position of each item."""
    places: dict[Hashable, int] = {}
    for at, item in enumerate(order):
        places.setdefault(item, at)
    return places


def _in_order(merged: list[JSON], patch: list[JSON], before: list[JSON], key: str) -> list[JSON]:
    """Put elements that the patch names in its order, the others in the order they had, and weave both together."""
    identify = _identifier(key)
    wanted, had = _places(map(identify, patch)), _places(map(identify, before))
    places = [(item, wanted.get(identify(item), -1), had.get(identify(item), -1)) for item in merged]
    named = sorted((each for each in places if each[1] >= 0), key=lambda each: each[1])
    others = sorted((each for each in places if each[1] < 0), key=lambda each: each[2])
    woven: list[JSON] = []
    next_named = next_other = 0
    while next_named < len(named) and next_other < len(others):
        if 0 <= others[next_other][2] < named[next_named][2]:
            woven.append(others[next_other][0])
            next_other += 1
        else:
            woven.append(named[next_named][0])
            next_named += 1
    return [*woven, *(each[0] for each in (*named[next_named:], *others[next_other:]))]
