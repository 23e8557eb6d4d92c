"""Required fields of built-in kinds, by their schemas.

It is the whole validation of kinds that have none of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kubesandbox.objects.fielderrors import child, required
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import SchemaSet
from pyverno.kube.status import FieldError

__all__ = ["RequiredFields"]

_Check: TypeAlias = Callable[[JSON, str, list[FieldError]], None]
_FREE: Final = frozenset({"metadata", "status"})


class RequiredFields:
    """The checks of required fields of one Kubernetes version, compiled per definition at first use."""

    def __init__(self, schemas: SchemaSet) -> None:
        self._schemas = schemas
        self._compiled: dict[str, _Check] = {}

    def check(self, definition: str, body: JSONObject, errors: list[FieldError]) -> None:
        """Add an error for every required field of an object that is not there."""
        self._struct(definition)({key: value for key, value in body.items() if key not in _FREE}, "", errors)

    def _struct(self, name: str) -> _Check:
        found = self._compiled.get(name)
        if found is None:
            definition = self._schemas.definitions[name]
            needed: list[str] = [key for key in definition.get("required", ()) if key not in _FREE]
            properties = definition.get("properties", {})
            lists = frozenset(key for key in needed if "array" in (properties[key].get("type") or ()))
            fields = {key: inner for key, schema in properties.items() if (inner := self._value(schema)) is not None}

            def found(value: JSON, path: str, errors: list[FieldError]) -> None:
                if type(value) is not dict:
                    return
                for key in needed:
                    item = value.get(key)
                    if item is None or item == "" or (item == [] and key in lists):
                        errors.append(required(child(path, key)))
                for key, item in value.items():
                    inner = fields.get(key)
                    if inner is not None and item:
                        inner(item, child(path, key), errors)

            self._compiled[name] = found
        return found

    def _lazy(self, name: str) -> _Check:
        """Return the check of a type that may contain itself."""

        def check(value: JSON, path: str, errors: list[FieldError]) -> None:
            self._struct(name)(value, path, errors)

        return check

    def _value(self, schema: JSONObject) -> _Check | None:
        reference = schema.get("$ref")
        if reference:
            if "properties" not in self._schemas.definitions[reference]:
                return None
            return self._lazy(reference)
        items, values = schema.get("items"), schema.get("additionalProperties")
        if isinstance(items, dict) and (element := self._value(items)) is not None:
            return _each(element)
        if isinstance(values, dict) and (element := self._value(values)) is not None:
            return _each_value(element)
        return None


def _each(element: _Check) -> _Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        for index, item in enumerate(value if type(value) is list else ()):
            element(item, f"{path}[{index}]", errors)

    return check


def _each_value(element: _Check) -> _Check:
    def check(value: JSON, path: str, errors: list[FieldError]) -> None:
        for key, item in (value if type(value) is dict else {}).items():
            element(item, f"{path}[{key}]", errors)

    return check
