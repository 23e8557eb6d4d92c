"""Lists that are sets or maps (`x-kubernetes-list-type`): no element, or no key, may be there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from kubesandbox.objects.fielderrors import child, duplicate, invalid
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.status import FieldError

__all__ = ["ListCheck", "compile_list_types"]

ListCheck: TypeAlias = Callable[[JSON, str, list[FieldError]], None]


def compile_list_types(schema: JSONObject) -> ListCheck | None:
    """Return the check of all lists in and below a schema, None where it has none that must be unique.

    >>> errors = []
    >>> compile_list_types({"x-kubernetes-list-type": "set"})(["a", "b", "a"], "spec.x", errors)
    >>> str(errors[0])
    'spec.x[2]: Duplicate value: "a"'
    """
    kind = schema.get("x-kubernetes-list-type")
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    items = compile_list_types(schema["items"]) if isinstance(schema.get("items"), dict) else None
    values = schema.get("additionalProperties")
    every = compile_list_types(values) if isinstance(values, dict) else None
    properties = schema.get("properties") or {}
    fields = [(key, found) for key, value in properties.items() if (found := compile_list_types(value)) is not None]
    if kind not in ("set", "map") and items is None and every is None and not fields:
        return None

    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if type(value) is list:
            if kind == "set":
                errors += [duplicate(f"{path}[{index}]", item) for index, item in _repeated(value)]
            elif kind == "map":
                errors += _map_errors(value, keys, path)
            if items is not None:
                for index, item in enumerate(value):
                    items(item, f"{path}[{index}]", errors)
        elif type(value) is dict:
            for key, field in fields:
                if key in value:
                    field(value[key], child(path, key), errors)
            if every is not None:
                for key, item in value.items():
                    if key not in properties:
                        every(item, f"{path}[{key}]", errors)

    return check


def _map_errors(items: list[JSON], keys: list[str], path: str) -> list[FieldError]:
    for index, item in enumerate(items):
        if item is not None and type(item) is not dict:
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    found = [{key: item[key] for key in keys if item and key in item} for item in items]
    return [duplicate(f"{path}[{index}]", item) for index, item in _repeated(found)]


def _repeated(items: list[JSON]) -> Iterable[tuple[int, JSON]]:
    """Yield the second appearance of everything that appears again."""
    counts: dict[str, int] = {}
    for index, item in enumerate(items):
        text = encode(item)
        counts[text] = counts.get(text, 0) + 1
        if counts[text] == 2:
            yield index, item
