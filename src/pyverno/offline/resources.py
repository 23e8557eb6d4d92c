"""Turn manifests into the objects that a cluster would receive.

Kyverno's command line fills in what a cluster would: the namespace `default`, and empty maps where a manifest has
null.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyverno.errors import DocumentError, PyvernoError, UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.kinds import KindTable
from pyverno.kube.resource import Resource
from pyverno.kube.yaml.documents import Document, expand_lists
from pyverno.policy.schema import describe_type

__all__ = ["normalise", "read_objects", "unique"]

_MAPS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector", "data", "stringData"})


def read_objects(documents: Iterable[Document]) -> tuple[list[Document], list[PyvernoError]]:
    """Split documents, lists expanded, into objects of a cluster and an error for each that can be none."""
    objects: list[Document] = []
    errors: list[PyvernoError] = []
    for document in expand_lists(documents):
        value = document.value
        if isinstance(value, dict) and "items" in value and value["items"] is None and value.get("kind") == "List":
            continue  # Go writes an empty list as null
        problem = _problem(value)
        if problem is None:
            objects.append(document)
        else:
            path, text = problem
            errors.append(UsageError(text, location=document.location(path)))
    return objects, errors


_TEXTS = ("name", "namespace", "generateName")


def _problem(value: JSON) -> tuple[tuple[str, ...], str] | None:
    """Return where and why a document is no object of a cluster; None where it is one."""
    missing = [name for name in ("apiVersion", "kind") if not isinstance(value, dict) or not value.get(name)]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        return (), f"the document is not a resource: {' and '.join(missing)} {verb} missing"
    for name in ("apiVersion", "kind"):
        if not isinstance(value[name], str):
            return (name,), f"`{name}` must be a string, found {describe_type(value[name])}"
    if value["kind"] == "List":
        found = "nothing" if "items" not in value else describe_type(value["items"])
        return ("items",), f"`items` must be a list, found {found}"
    metadata = value.get("metadata")
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        return ("metadata",), f"`metadata` must be an object, found {describe_type(metadata)}"
    for name in _TEXTS:
        text = metadata.get(name)
        if text is not None and not isinstance(text, str):
            hint = "" if isinstance(text, list | dict) else ": a string needs quotes here"
            return ("metadata", name), f"`metadata.{name}` must be a string, found {describe_type(text)}{hint}"
    return None


def normalise(document: JSONObject, kinds: KindTable, *, has_nulls: bool = True) -> JSONObject:
    """Return the object as a cluster would see it; the argument is not changed.

    `has_nulls` is False when it is known that no value is null, which saves looking for them.
    Raises DocumentError for an object that is nested too deeply.
    """
    try:
        filled: JSONObject = document
        if has_nulls and _may_hold_null(document):
            filled = _without_null_maps(document)
    except RecursionError:
        raise DocumentError("the object is nested too deeply") from None
    view = Resource(filled)
    if view.namespace or kinds.is_namespaced(view.gvk) is False:
        return filled
    metadata = filled.get("metadata")
    if not isinstance(metadata, dict):
        return filled
    return {**filled, "metadata": {**metadata, "namespace": "default"}}


def _may_hold_null(document: JSONObject) -> bool:
    """Return whether a walk through the document is worth while; writing it out is much cheaper than walking it."""
    import orjson  # only resources whose text holds a null come here

    try:
        return b"null" in orjson.dumps(document)
    except TypeError:
        return True


def _without_null_maps(value: JSON) -> JSON:
    """Replace null by {} under the keys that hold maps of text."""
    if isinstance(value, dict):
        changed: JSONObject | None = None
        for key, item in value.items():
            new = {} if item is None and key in _MAPS else _without_null_maps(item)
            if new is not item:
                changed = dict(value) if changed is None else changed
                changed[key] = new
        return value if changed is None else changed
    if isinstance(value, list):
        items = [_without_null_maps(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def unique(documents: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """Split manifests into the first of each (kind, namespace, name) and the duplicates after it."""
    seen: set[tuple[str, str, str, str]] = set()
    kept, duplicates = [], []
    for document in expand_lists(documents):
        view = Resource(document.value)
        key = (view.group, view.kind, view.namespace, view.name or view.generate_name)
        if key in seen and (view.name or view.generate_name):
            duplicates.append(document)
            continue
        seen.add(key)
        kept.append(document)
    return kept, duplicates
