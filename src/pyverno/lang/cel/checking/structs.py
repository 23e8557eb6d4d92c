"""Struct types: where their fields come from.

`DeclaredTypes` has them in tables, `MutationTypes` has the `Object{...}` and `JSONPatch{...}` of mutations,
`SchemaTypes` reads OpenAPI schemas as Kubernetes' type checking does, `StructTypes` tries several providers in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyverno.errors import EvaluationError
from pyverno.kube.json import JSONObject
from pyverno.lang.cel.declarations import StructProvider
from pyverno.lang.cel.syntax.parser import RESERVED
from pyverno.lang.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)
from pyverno.lang.cel.values import StructValue, Value, type_name
from pyverno.value import dataclass

__all__ = ["DeclaredTypes", "MutationTypes", "SchemaTypes", "StructTypes", "misnamed_types"]

OBJECT: Final = "Object"
JSON_PATCH: Final = "JSONPatch"
_PATCH_FIELDS: Final[Mapping[str, Type]] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class DeclaredTypes:
    """Struct types given as tables: fields by struct name.

    >>> DeclaredTypes({"variables": {"x": INT}}).field_type("variables", "y") is None
    True
    """

    def __init__(self, structs: Mapping[str, Mapping[str, Type]]) -> None:
        self._structs = {name: dict(fields) for name, fields in structs.items()}

    def has_struct(self, name: str) -> bool:
        """Return whether the tables have the struct."""
        return name in self._structs

    def struct_type(self, name: str) -> Type:
        """Return the struct type."""
        return struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return the type of a field."""
        return self._structs.get(name, {}).get(field_name)

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the struct value."""
        return StructValue(name, fields)


class MutationTypes:
    """`Object` and `Object.field.field` with fields of any name, and `JSONPatch`."""

    def has_struct(self, name: str) -> bool:
        """Return whether a name is one of the mutation types."""
        return name in (OBJECT, JSON_PATCH) or name.startswith(OBJECT + ".")

    def struct_type(self, name: str) -> Type:
        """Return the type of a literal."""
        return struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return dyn for every field of an Object, and the four fields of a JSONPatch."""
        return _PATCH_FIELDS.get(field_name) if name == JSON_PATCH else DYN

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the struct value; the fields of a JSONPatch are checked."""
        if name == JSON_PATCH:
            for field_name, value in fields.items():
                if field_name != "value" and not isinstance(value, str):
                    raise EvaluationError(f"unexpected type {type_name(value)} for JSONPatchType '{field_name}' field")
        return StructValue(name, fields)


def misnamed_types(value: Value, path: str = OBJECT) -> list[str]:
    """Return what is wrong with the type names inside an `Object{}`: each must follow its field path.

    >>> misnamed_types(StructValue("Object", {"spec": StructValue("Object.metadata", {})}))[0][:63]
    'unexpected type name "Object.metadata", expected "Object.spec",'
    """
    problems: list[str] = []
    waiting: list[tuple[Value, str]] = [(value, path)]
    while waiting:
        item, expected = waiting.pop()
        if isinstance(item, StructValue):
            if item.cel_type != expected:
                problems.append(
                    f'unexpected type name "{item.cel_type}", expected "{expected}", '
                    "which matches field name path from root Object type"
                )
            waiting += [(inner, f"{expected}.{name}") for name, inner in item.fields.items()]
        elif isinstance(item, (list, tuple)):
            waiting += [(inner, expected) for inner in item]
        elif isinstance(item, dict):
            waiting += [(inner, expected) for inner in item.values()]
    return problems


@dataclass(frozen=True, slots=True)
class StructTypes:
    """Combines several providers; the first that declares a name resolves it."""

    providers: tuple[StructProvider, ...]

    def _of(self, name: str) -> StructProvider | None:
        for provider in self.providers:
            if provider.has_struct(name):
                return provider
        return None

    def has_struct(self, name: str) -> bool:
        """Return whether any provider has the struct."""
        return self._of(name) is not None

    def struct_type(self, name: str) -> Type:
        """Return the type of a literal."""
        provider = self._of(name)
        return provider.struct_type(name) if provider is not None else struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return the type of a field."""
        provider = self._of(name)
        return provider.field_type(name, field_name) if provider is not None else None

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the value of a literal."""
        provider = self._of(name)
        return provider.construct(name, fields) if provider is not None else StructValue(name, fields)


_FORMATS: Final[Mapping[str, Type]] = {
    "byte": BYTES,
    "binary": BYTES,
    "date": TIMESTAMP,
    "date-time": TIMESTAMP,
    "duration": DURATION,
}
_SCALARS: Final[Mapping[str, Type]] = {"boolean": BOOL, "integer": INT, "number": DOUBLE, "string": STRING}


class SchemaTypes:
    """Struct types out of OpenAPI schemas, named by their path from a root type.

    `roots` are schemas by type name; `resolve` finds the schema of a `$ref`. Types are built on first use. A
    schema without a known type, int-or-string and objects that preserve unknown fields are dyn.

    >>> types = SchemaTypes({"Pod": {"type": "object", "properties": {"n": {"type": "integer"}}}})
    >>> types.field_type("Pod", "n").kind
    'int'
    """

    def __init__(
        self, roots: Mapping[str, JSONObject], resolve: Callable[[str], JSONObject | None] = lambda _: None
    ) -> None:
        self._resolve = resolve
        self._schemas: dict[str, JSONObject] = {}
        self._fields: dict[str, Mapping[str, Type]] = {}
        self._types = {name: self._type(name, schema) for name, schema in roots.items()}

    def type_of(self, name: str) -> Type:
        """Return the type of a root: a struct, or the type of its schema."""
        return self._types.get(name, DYN)

    def has_struct(self, name: str) -> bool:
        """Return whether a struct of that name was built."""
        return name in self._schemas

    def struct_type(self, name: str) -> Type:
        """Return the struct type."""
        return struct(name)

    def field_type(self, name: str, field_name: str) -> Type | None:
        """Return the type of a property; reserved words are found with and without their underscores."""
        fields = self._fields_of(name)
        found = fields.get(field_name)
        if found is None and field_name.startswith("__") and field_name.endswith("__") and field_name[2:-2] in RESERVED:
            return fields.get(field_name[2:-2])
        return found

    def construct(self, name: str, fields: dict[str, Value]) -> Value:
        """Return the struct value."""
        return StructValue(name, fields)

    def _fields_of(self, name: str) -> Mapping[str, Type]:
        known = self._fields.get(name)
        if known is None:
            schema = self._schemas.get(name, {})
            known = {
                escaped_name(key): self._type(f"{name}.{key}", value)
                for key, value in schema.get("properties", {}).items()
            }
            self._fields[name] = known
        return known

    def _type(self, name: str, schema: JSONObject) -> Type:
        schema = self._follow(schema)
        if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields"):
            return DYN
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), None)
        if kind == "array":
            items = schema.get("items")
            return list_of(self._type(f"{name}.@items", items)) if isinstance(items, dict) else list_of(DYN)
        if kind == "object":
            return self._object(name, schema)
        if kind == "string":
            return _FORMATS.get(schema.get("format", ""), STRING)
        return _SCALARS.get(str(kind), DYN)

    def _object(self, name: str, schema: JSONObject) -> Type:
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return map_of(STRING, self._type(f"{name}.@values", values))
        if schema.get("properties"):
            self._schemas[name] = schema
            return struct(name)
        return map_of(STRING, DYN) if values is True else DYN

    def _follow(self, schema: JSONObject) -> JSONObject:
        for _ in range(8):
            reference = schema.get("$ref")
            if reference is None and len(schema.get("allOf", ())) == 1:
                schema = schema["allOf"][0]
                continue
            if not isinstance(reference, str):
                return schema
            schema = self._resolve(reference) or {}
        return {}


_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))


def escaped_name(name: str) -> str:
    """Return a property name as expressions write it.

    >>> escaped_name("x-y")
    'x__dash__y'
    """
    # Kubernetes: apiserver/pkg/cel/escaping.go; reserved words stay usable after a dot (typeprovider.go)
    if not any(mark in name for mark, _ in _ESCAPES):
        return name
    for mark, word in _ESCAPES:
        name = name.replace(mark, word)
    return name
