"""Correspondence between the parts of an older and a new object, so that transitions can be judged.

Fields and keys of maps are related by name, elements of `x-kubernetes-list-type: map` by their keys; elements of other
lists are not related to anything.
"""

from __future__ import annotations

from typing import Final

from pyverno.kube.json import JSON, JSONObject, encode

__all__ = ["UNRELATED", "related_field", "related_items"]


class _Unrelated:
    """There is no older value."""

    __slots__ = ()


UNRELATED: Final = _Unrelated()


def related_field(old: JSON, key: str) -> JSON:
    """Return the older value of a field.

    >>> related_field({"a": 1}, "a"), related_field({"a": 1}, "b") is UNRELATED
    (1, True)
    """
    return old.get(key, UNRELATED) if type(old) is dict else UNRELATED


def related_items(schema: JSONObject, items: list[JSON], old: JSON) -> list[JSON]:
    """Return for each element of a list its older self.

    >>> schema = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    >>> related_items(schema, [{"name": "b", "x": 2}], [{"name": "a"}, {"name": "b"}])
    [{'name': 'b'}]
    """
    if schema.get("x-kubernetes-list-type") != "map" or type(old) is not list:
        return [UNRELATED] * len(items)
    keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
    by_key = {_key(item, keys): item for item in old}
    return [by_key.get(_key(item, keys), UNRELATED) for item in items]


def _key(item: JSON, keys: list[str]) -> str:
    return encode([item.get(key) for key in keys]) if type(item) is dict else encode(item)
