"""Whole Kubernetes objects inside custom resources (`x-kubernetes-embedded-resource`), with kind and version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kubesandbox.objects.fielderrors import child, invalid, required
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import FieldError

__all__ = ["EmbeddedCheck", "compile_embedded"]

EmbeddedCheck: TypeAlias = Callable[[JSON, str, list[FieldError]], None]


def compile_embedded(schema: JSONObject) -> EmbeddedCheck | None:
    """Return the check of all objects inside values of a schema, None where there can be none.

    >>> errors = []
    >>> compile_embedded({"x-kubernetes-embedded-resource": True})({"kind": "Pod"}, "spec.pod", errors)
    >>> str(errors[0])
    'spec.pod.apiVersion: Required value'
    """
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties = schema.get("properties") or {}
    fields = [(key, found) for key, value in properties.items() if (found := compile_embedded(value)) is not None]
    values, items_schema = schema.get("additionalProperties"), schema.get("items")
    every = compile_embedded(values) if isinstance(values, dict) else None
    items = compile_embedded(items_schema) if isinstance(items_schema, dict) else None
    if not is_embedded and not fields and every is None and items is None:
        return None

    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        if type(value) is list:
            if items is not None:
                for index, item in enumerate(value):
                    items(item, f"{path}[{index}]", errors)
        elif type(value) is dict:
            if is_embedded:
                errors.extend(_identity_errors(value, path))
            for key, field in fields:
                if key in value:
                    field(value[key], child(path, key), errors)
            if every is not None:
                for key, item in value.items():
                    if key not in properties:
                        every(item, f"{path}[{key}]", errors)

    return check


def _identity_errors(value: JSONObject, path: str) -> list[FieldError]:
    errors = [required(child(path, key)) for key in ("apiVersion", "kind") if key not in value]
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            errors.append(invalid(child(path, key), value[key], "must be a string"))
        elif value.get(key) == "":
            errors.append(invalid(child(path, key), "", "must not be empty"))
    return errors
