"""Defaulting of whole objects: finds the types inside a kind, and calls the hook of each.

Compiled once per definition; only the paths that lead to a hook are walked and copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kubesandbox.defaults.hook import Hooks
from kubesandbox.defaults.objects import OBJECT_DEFAULTS
from kubesandbox.defaults.pods import POD_DEFAULTS
from kubesandbox.defaults.workloads import WORKLOAD_DEFAULTS, WORKLOAD_DEFAULTS_1_35
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import SchemaSet

__all__ = ["BUILTIN_HOOKS", "BuiltinDefaults"]

Fill: TypeAlias = Callable[[JSON], JSON]

BUILTIN_HOOKS: Hooks = {**POD_DEFAULTS, **WORKLOAD_DEFAULTS, **OBJECT_DEFAULTS}


class BuiltinDefaults:
    """The defaults of the kinds of one Kubernetes version."""

    def __init__(self, schemas: SchemaSet, hooks: Hooks = BUILTIN_HOOKS) -> None:
        """Take the definitions, and the hooks that hold for all versions."""
        self._schemas = schemas
        minor = int(schemas.version.partition(".")[2])
        self._hooks = {**hooks, **WORKLOAD_DEFAULTS_1_35} if minor >= 35 else hooks
        self._compiled: dict[str, Fill | None] = {}

    def fill(self, definition: str, body: JSONObject) -> JSONObject:
        """Return the object with all defaults filled in; unchanged parts are shared."""
        fill = self._struct(definition, ())
        filled: JSONObject = fill(body) if fill is not None else body
        return filled

    def _struct(self, name: str, above: tuple[str, ...]) -> Fill | None:
        if name in self._compiled:
            return self._compiled[name]
        if name in above:
            return None  # types that contain themselves have no defaults
        children: list[tuple[str, Fill]] = []
        for key, schema in self._schemas.definitions.get(name, {}).get("properties", {}).items():
            child = self._value(schema, (*above, name))
            if child is not None:
                children.append((key, child))
        hook = self._hooks.get(name)
        if hook is None and not children:
            self._compiled[name] = None
            return None
        fixed = tuple(children)

        def fill(value: JSON) -> JSON:
            if type(value) is not dict:
                return value
            filled = value.copy()
            if hook is not None:
                hook(filled)
            for key, child in fixed:
                inner = filled.get(key)
                if inner is not None:
                    filled[key] = child(inner)
            return filled

        self._compiled[name] = fill
        return fill

    def _value(self, schema: JSONObject, above: tuple[str, ...]) -> Fill | None:
        if "$ref" in schema:
            return self._struct(schema["$ref"], above)
        items = schema.get("items")
        if isinstance(items, dict):
            element = self._value(items, above)
            return _each(element) if element is not None else None
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            element = self._value(values, above)
            return _each_value(element) if element is not None else None
        return None


def _each(element: Fill) -> Fill:
    def fill(value: JSON) -> JSON:
        return [element(item) for item in value] if type(value) is list else value

    return fill


def _each_value(element: Fill) -> Fill:
    def fill(value: JSON) -> JSON:
        return {key: element(item) for key, item in value.items()} if type(value) is dict else value

    return fill
