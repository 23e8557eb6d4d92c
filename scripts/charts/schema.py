"""The schema of a chart's values, made from values.yaml: what is not there is refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["schema"]

_ANY_SCALAR = ["string", "number", "boolean", "object", "array", "null"]
_CHOICES = {
    "mode": ["single", "split"],
    "platform": ["kubernetes", "openshift"],
    "policyType": ["ClusterPolicy", "ValidatingPolicy"],
    "podSecurityStandard": ["baseline", "restricted", "privileged", "custom"],
    "validationFailureAction": ["Audit", "Enforce"],
    "failurePolicy": ["Fail", "Ignore"],
}


def schema(values: dict[str, Any], hinted: Iterable[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of values like these: closed maps, except that empty maps are open.

    `hinted` are further paths that pass the schema, so that a template can refuse them with a reason.
    """
    found = _object(values)
    found["properties"]["global"] = found["properties"].get("global", {"type": "object"})
    for name, choices in _CHOICES.items():
        if name in found["properties"]:
            found["properties"][name] = {"enum": choices}
    for path in hinted:
        *parents, last = path.split(".")
        place = found
        for parent in parents:
            place = place["properties"].setdefault(parent, _object({}))
        place["properties"][last] = {}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **found}


def _object(values: dict[str, Any]) -> dict[str, Any]:
    made = {key: _of(value) for key, value in values.items()}
    return {"type": "object", "additionalProperties": False, "properties": made}


def _of(value: object) -> dict[str, Any]:
    match value:
        case dict() if value:
            return _object(value)
        case dict():
            return {"type": ["object", "null"]}
        case list():
            return {"type": ["array", "null"]}
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": ["number", "null"]}
        case str():
            return {"type": ["string", "null"]}
        case _:
            return {"type": _ANY_SCALAR}
