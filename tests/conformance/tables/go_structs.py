"""Typed Go values of table rows as the JSON that they stand for.

Rows keep the names of Go fields and mark structs with `$type`; where the JSON name is not the Go name in lower camel
case, the pair is listed here. This module must never drop a field that has a meaning.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["as_json", "json_name"]

_INLINED = frozenset({"ResourceDescription", "UserInfo", "ObjectMeta"})
_NAMES = {
    "MatchResources": "match",
    "ExcludeResources": "exclude",
    "Validation": "validate",
    "Mutation": "mutate",
    "Generation": "generate",
    "ResourceDescription": "resources",
    "ObjectMeta": "metadata",
    "RawPattern": "pattern",
    "RawAnyPattern": "anyPattern",
    "RawAnyAllConditions": "preconditions",
    "RawPatchStrategicMerge": "patchStrategicMerge",
    "APIVersion": "apiVersion",
    "URL": "url",
    "UID": "uid",
    "KMS": "kms",
    "CTLog": "ctlog",
    "ForEachValidation": "foreach",
    "ForEachMutation": "foreach",
    "ValidationFailureActionOverrides": "validationFailureActionOverrides",
    "StaticKeyAttestor": "keys",
    "KeylessAttestor": "keyless",
    "AnyAllConditions": "conditions",
}


def json_name(name: str) -> str:
    """Return the JSON name of a Go field.

    >>> json_name("ImageReferences"), json_name("MatchResources")
    ('imageReferences', 'match')
    """
    return _NAMES.get(name, name[:1].lower() + name[1:])


def as_json(value: Any) -> Any:
    """Return plain JSON; plain values stay, empty values that Go omits are omitted."""
    if isinstance(value, dict):
        if "Raw" in value and set(value) <= {"Raw", "$type"}:
            return json.loads(value["Raw"])
        if "$items" in value:
            return as_json(value["$items"])
        pairs = ((json_name(key) if "$type" in value else key, as_json(item)) for key, item in value.items())
        return {key: item for key, item in pairs if key != "$type" and item not in ({}, [], "", None)}
    return [as_json(item) for item in value] if isinstance(value, list) else value
