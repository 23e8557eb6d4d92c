"""The mark of an object in an ephemeral report: results count only for an object that fits it.

Anybody who reaches the webhook can have an object of their own judged under the name and uid of another one. So the
report on an answer notes a digest of what was judged, and the object is compared with it before results are merged.
The mark leaves out what others change after an answer: the status, labels and annotations that are added, the node of
a pod. It never shows contents; of a Secret it covers the metadata only, because reports have more readers.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import orjson

from pyverno.kube.json import JSON, JSONObject

__all__ = ["MARK", "fits", "mark_of"]

MARK: Final = "pyverno.io/object"
"""Annotation of an ephemeral report."""

_MAPS: Final = ("labels", "annotations")
_LEFT_OUT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_MAX_KEYS: Final = 64
_SECRET: Final = "Secret"  # noqa: S105 - a kind
_WHOLE: Final = "whole"


def mark_of(body: JSON, *, is_final: bool = True) -> str:
    """Return the mark of an object that was judged.

    An object that is not final, because later webhooks and the API server complete it, is known by its labels and
    annotations.

    >>> pod = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostPID": True}}
    >>> mark = mark_of(pod)
    >>> stored = {**pod, "spec": {"hostPID": True, "nodeName": "n"}, "status": {"phase": "Running"}}
    >>> fits(stored, mark), fits({**pod, "spec": {}}, mark)
    (True, False)
    """
    body = body if isinstance(body, dict) else {}
    keys = {name: sorted(_map(body, name))[:_MAX_KEYS] for name in _MAPS}
    return orjson.dumps({**keys, _WHOLE: is_final, "digest": _digest(body, keys, is_final=is_final)}).decode()


def fits(body: JSONObject, mark: str) -> bool:
    """Return whether a stored object may be the one that was judged; a mark that cannot be read fits none.

    >>> fits({"metadata": {}}, "x")
    False
    """
    try:
        found = orjson.loads(mark)
        keys = {name: [str(key) for key in found[name]] for name in _MAPS}
        return bool(found["digest"] == _digest(body, keys, is_final=found[_WHOLE] is True))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False


def _digest(body: JSONObject, keys: dict[str, list[str]], *, is_final: bool) -> str:
    maps = {name: {key: _map(body, name).get(key) for key in keys[name]} for name in _MAPS}
    rest: JSONObject = {}
    if is_final and body.get("kind") != _SECRET:
        rest = {key: value for key, value in body.items() if key not in _LEFT_OUT}
        if body.get("kind") == "Pod" and isinstance(rest.get("spec"), dict):
            rest["spec"] = {key: value for key, value in rest["spec"].items() if key != "nodeName"}
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) and is_final else None
    text = orjson.dumps([name, maps, rest], option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=16).hexdigest()


def _map(body: JSONObject, name: str) -> JSONObject:
    metadata = body.get("metadata")
    found = metadata.get(name) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
