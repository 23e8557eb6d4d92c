"""Create the JSON Patch (RFC 6902) between two values, as gomodules.xyz/jsonpatch v2 does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyverno.kube.json import JSON, JSONObject, equal, is_number
from pyverno.kube.patch.jsonpatch import escape_key

__all__ = ["create_patch"]

_LONG_PATH: Final = 512

_Step = JSONObject | tuple[JSON, JSON, str]


def create_patch(before: JSON, after: JSON) -> list[JSONObject]:
    """Return the operations (`add`, `replace`, `remove`) that turn `before` into `after`.

    Objects: keys of `after` in sorted order, then removed keys. Lists: surplus elements are removed from the end, or new
    ones added at the end, then equal positions are compared. Values that are the same object cost nothing. A value
    below a very long path is replaced as a whole, so that the paths are not much longer than the values.

    >>> create_patch({"a": 1, "b": [1, 2]}, {"a": 2, "b": [1], "c/d": 3})
    [{'op': 'replace', 'path': '/a', 'value': 2}, {'op': 'remove', 'path': '/b/1'}, {'op': 'add', 'path': '/c~1d', 'value': 3}]
    """  # noqa: E501  # one operation list, as it prints
    operations: list[JSONObject] = []
    waiting: list[Iterator[_Step]] = [iter([(before, after, "")])]
    while waiting:
        step = next(waiting[-1], None)
        if step is None:
            waiting.pop()
        elif isinstance(step, dict):
            operations.append(step)
        else:
            old, new, path = step
            if old is new:
                continue
            if len(path) > _LONG_PATH:
                if not (_same_scalar(old, new) or equal(old, new)):
                    operations.append({"op": "replace", "path": path, "value": new})
            elif isinstance(old, dict) and isinstance(new, dict):
                waiting.append(_object_steps(old, new, path))
            elif isinstance(old, list) and isinstance(new, list):
                waiting.append(_list_steps(old, new, path))
            elif not _same_scalar(old, new):
                operations.append({"op": "replace", "path": path, "value": new})
    return operations


def _object_steps(old: JSONObject, new: JSONObject, path: str) -> Iterator[_Step]:
    for key in sorted(new):
        at = f"{path}/{escape_key(key)}"
        if key in old:
            yield old[key], new[key], at
        else:
            yield {"op": "add", "path": at, "value": new[key]}
    for key in sorted(old.keys() - new.keys()):
        yield {"op": "remove", "path": f"{path}/{escape_key(key)}"}


def _list_steps(old: list[JSON], new: list[JSON], path: str) -> Iterator[_Step]:
    shared = min(len(old), len(new))
    for index in range(len(old) - 1, shared - 1, -1):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(shared, len(new)):
        yield {"op": "add", "path": f"{path}/{index}", "value": new[index]}
    for index in range(shared):
        yield old[index], new[index], f"{path}/{index}"


def _same_scalar(old: JSON, new: JSON) -> bool:
    if is_number(old) and is_number(new):
        return bool(old == new)
    return type(old) is type(new) and not isinstance(old, dict | list) and bool(old == new)
