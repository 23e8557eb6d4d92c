"""JSON patches of webhooks, applied as the API server's library (evanphx/json-patch v4) applies them, in its words."""

from __future__ import annotations

from collections.abc import Sequence

from pyverno.errors import PatchError
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.patch.jsonpatch import apply_patch

__all__ = ["apply_webhook_patch"]

_KNOWN = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_WITH_VALUE = frozenset({"add", "replace", "test"})
_MISSING = "missing value"


def apply_webhook_patch(document: JSON, operations: Sequence[JSONObject]) -> JSON:
    """Return the document after all operations; raises PatchError.

    >>> apply_webhook_patch({"a": 1}, [{"op": "copy", "from": "/none", "path": "/b"}])
    {'a': 1, 'b': None}
    """
    for operation in operations:
        _check(operation)
        value = {"value": None} if operation["op"] in _WITH_VALUE else {}
        try:
            document = apply_patch(document, [{**value, **operation}], missing_is_null=True)
        except PatchError as error:
            # this version of the library capitalizes the text, later ones do not
            text = error.message.replace("unable to remove nonexistent", "Unable to remove nonexistent")
            raise PatchError(text) from None
    return document


def _check(operation: JSONObject) -> None:
    kind = operation.get("op") if isinstance(operation.get("op"), str) else "unknown"
    if kind not in _KNOWN:
        raise PatchError(f"Unexpected kind: {kind}")
    path = operation.get("path")
    if not isinstance(path, str):
        raise PatchError(f"{kind} operation failed to decode path: {_MISSING}")
    if path == "" and kind in ("add", "remove"):
        raise PatchError(f'{kind} operation does not apply: doc is missing path: "": {_MISSING}')
