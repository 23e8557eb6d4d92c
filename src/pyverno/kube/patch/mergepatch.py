"""JSON Merge Patch (RFC 7396): applied and created.

Inputs never change; results share everything that a patch does not touch.
"""

from __future__ import annotations

from pyverno.kube.json import JSON, JSONObject, equal

__all__ = ["apply_merge_patch", "create_merge_patch"]


def apply_merge_patch(document: JSON, patch: JSON) -> JSON:
    """The document after a merge patch: objects merge key by key, null deletes a key, all else replaces.

    >>> apply_merge_patch({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None}, "d": [2]})
    {'a': {'c': 2}, 'd': [2]}
    """
    if not isinstance(patch, dict):
        return patch
    result: JSONObject = {}
    waiting: list[tuple[JSONObject, JSON, JSONObject]] = [(result, document, patch)]
    while waiting:
        target, before, changes = waiting.pop()
        if isinstance(before, dict):
            target.update(before)
        for key, change in changes.items():
            if change is None:
                target.pop(key, None)
            elif isinstance(change, dict):
                old = target.get(key)
                child: JSONObject = {}
                target[key] = child
                waiting.append((child, old, change))
            else:
                target[key] = change
    return result


def create_merge_patch(before: JSON, after: JSON) -> JSON:
    """The smallest merge patch that turns `before` into `after`; `{}` when they are equal objects.

    A null inside `after` cannot be expressed by a merge patch (it means "delete"); it is written as it is.

    >>> create_merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2, "d": 4}, "e": 5})
    {'a': None, 'b': {'d': 4}, 'e': 5}
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch: JSONObject = {}
    waiting: list[tuple[JSONObject, JSONObject, JSONObject]] = [(patch, before, after)]
    # Children are created empty on the way down and taken out again on the way up when nothing differs inside.
    parents: list[tuple[JSONObject, str]] = []
    while waiting:
        changes, old, new = waiting.pop()
        for key in old:
            if key not in new:
                changes[key] = None
        for key, value in new.items():
            was = old.get(key)
            if key in old and isinstance(was, dict) and isinstance(value, dict):
                if was is not value:
                    changes[key] = {}
                    parents.append((changes, key))
                    waiting.append((changes[key], was, value))
            elif key not in old or not equal(was, value):
                changes[key] = value
    for changes, key in reversed(parents):
        if not changes[key]:
            del changes[key]
    return patch
