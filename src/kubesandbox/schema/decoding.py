"""Objects of built-in kinds, read as Go reads them into its structs and writes them back.

What comes out has no unknown fields, no nulls, no zero values that Go leaves out, and all values that Go always writes
(`status: {}`, `resources: {}`). Quantities and times are in canonical form. A value of a wrong JSON type is a 400 with
the text of Go's decoder. One decoder is compiled per definition at its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kubesandbox.schema.fieldpath import Place, place_text
from kubesandbox.schema.scalars import (
    SPECIAL_TYPES,
    MismatchError,
    Reader,
    UnreadableError,
    json_kind,
    read_bytes,
    scalar_reader,
)
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import GoField, SchemaSet, go_fields
from pyverno.kube.status import StatusError, bad_request

__all__ = ["Decoded", "Decoders", "schema_type", "unreadable"]

Problems: TypeAlias = list[str]
Decoder: TypeAlias = Callable[[JSON, Place, Problems], JSON]


@dataclass(frozen=True, slots=True)
class Decoded:
    """An object without unknown fields, and the problems of strict decoding: `unknown field "spec.x"`."""

    body: JSONObject
    problems: tuple[str, ...] = ()


_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCHEMA_PROPS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_ANY_OR_SCHEMA: Final = frozenset({f"{_SCHEMA_PROPS}OrArray", f"{_SCHEMA_PROPS}OrBool"})
_POINTER: Final = GoField("nil", "")
_ALWAYS: Final = ("struct", "never", "null", "other")
_ZEROS: Final[Mapping[str, JSON]] = {
    "resource.Quantity": "0",
    "intstr.IntOrString": 0,
}


def unreadable(kind: str, version: str, why: str) -> StatusError:
    """Return 400: the body cannot become an object of this kind.

    >>> str(unreadable("Pod", "v1", "no luck"))
    'Pod in version "v1" cannot be handled as a Pod: no luck'
    """
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


@dataclass(frozen=True, slots=True)
class _Field:
    """The reader of one field of a struct, and its value when it is absent.

    A field is read by `scalar`, or by `nested`, which has fields below it.
    """

    go: GoField
    scalar: Reader | None
    nested: Decoder | None
    always: Callable[[], JSON] | None

    @property
    def path(self) -> str:
        """The field as messages name it, after its key."""
        return f"{self.go.embedded}." if self.go.embedded else ""


class Decoders:
    """The decoders of one Kubernetes version."""

    def __init__(self, schemas: SchemaSet) -> None:
        self._schemas = schemas
        self._structs: dict[str, Decoder] = {}
        self._zeros: dict[str, Callable[[], JSONObject]] = {}

    def decode(self, definition: str, kind: str, version: str, body: JSONObject) -> Decoded:
        """Read an object of a definition; raises StatusError 400 as the API server words it."""
        problems: Problems = []
        try:
            decoded = self._struct(definition)(body, None, problems)
        except (MismatchError, UnreadableError) as error:
            raise unreadable(kind, version, str(error)) from None
        return Decoded(decoded, tuple(problems))

    def metadata(self, kind: str, version: str, value: JSONObject, problems: list[str]) -> JSONObject:
        """Read the metadata of a custom resource, whose other fields have another schema."""
        try:
            read: JSONObject = self._struct(_OBJECT_META)(value, (None, "metadata"), problems)
        except (MismatchError, UnreadableError) as error:
            raise unreadable(kind, version, str(error)) from None
        return read

    def zero(self, definition: str) -> JSONObject:
        """Return what Go writes for an empty struct."""
        return self._zero_maker(definition)()

    def _struct(self, name: str) -> Decoder:
        found = self._structs.get(name)
        if found is None:
            marks = go_fields(name)
            properties: dict[str, JSONObject] = self._schemas.definitions[name].get("properties", {})
            fields = {key: self._field(key, schema, marks.get(key, _POINTER)) for key, schema in properties.items()}
            found = self._structs[name] = _struct_decoder(fields, name)
        return found

    def _field(self, key: str, schema: JSONObject, go: GoField) -> _Field:
        always = None
        if go.mark in _ALWAYS:
            always = self._always(schema, go)
        scalar = self._scalar(schema, go.type)
        return _Field(go, scalar, None if scalar else self._nested(schema, go.type), always)

    def _scalar(self, schema: JSONObject, go_type: str) -> Reader | None:
        """Return the reader of a value without fields, None for structs, lists and maps."""
        reference = schema.get("$ref", "")
        if reference in SPECIAL_TYPES:
            return SPECIAL_TYPES[reference]
        if reference in _ANY_OR_SCHEMA:
            return None
        if reference:
            target = self._schemas.definitions[reference]
            return None if "properties" in target or target.get("additionalProperties") else self._scalar(target, "")
        kind = schema_type(schema)
        if kind == "array" or (kind == "object" and "additionalProperties" in schema):
            return read_bytes if go_type == "[]uint8" else None
        return scalar_reader(kind, str(schema.get("format", "")))

    def _nested(self, schema: JSONObject, go_type: str) -> Decoder:
        reference = schema.get("$ref", "")
        if reference in _ANY_OR_SCHEMA:
            return self._schema_or_anything
        if reference:
            target = self._schemas.definitions[reference]
            return self._struct_value(reference, go_type) if "properties" in target else self._nested(target, go_type)
        if schema_type(schema) == "array":
            return self._list(schema.get("items", {}), go_type or "[]string")
        return self._map(schema["additionalProperties"], go_type or "map[string]string")

    def _struct_value(self, definition: str, go_type: str) -> Decoder:
        wanted = go_type.removeprefix("*") or _go_name(definition)

        def decode(value: JSON, place: Place, problems: Problems) -> JSON:
            if type(value) is not dict:
                raise MismatchError(json_kind(value), wanted)
            return self._struct(definition)(value, place, problems)

        return decode

    def _schema_or_anything(self, value: JSON, place: Place, problems: Problems) -> JSON:
        return self._struct(_SCHEMA_PROPS)(value, place, problems) if type(value) is dict else value

    def _list(self, items: JSONObject, go_type: str) -> Decoder:
        element = go_type.removeprefix("[]") if go_type.startswith("[]") else ""
        reader = self._scalar(items, element)
        if reader is not None:
            return _scalar_list(reader, go_type, element or "string")
        inner = self._nested(items, element)

        def decode(value: JSON, place: Place, problems: Problems) -> JSON:
            if type(value) is not list:
                raise MismatchError(json_kind(value), go_type)
            return [inner({} if item is None else item, (place, index), problems) for index, item in enumerate(value)]

        return decode

    def _map(self, items: JSONObject, go_type: str) -> Decoder:
        element = go_type.partition("]")[2] if go_type.startswith("map[") else ""
        reader = self._scalar(items, element)
        if reader is not None:
            return _scalar_map(reader, go_type, element or "string")
        inner = self._nested(items, element)

        def decode(value: JSON, place: Place, problems: Problems) -> JSON:
            if type(value) is not dict:
                raise MismatchError(json_kind(value), go_type)
            return {key: inner({} if item is None else item, (place, key), problems) for key, item in value.items()}

        return decode

    def _always(self, schema: JSONObject, go: GoField) -> Callable[[], JSON]:
        if go.mark == "null":
            return lambda: None
        if go.mark == "struct" and "$ref" in schema and schema["$ref"] not in SPECIAL_TYPES:
            return self._zero_maker(schema["$ref"])
        kind = schema_type(schema)
        zero: JSON = None
        if go.type in _ZEROS:
            zero = _ZEROS[go.type]
        elif go.mark == "never" and not go.type.startswith(("[]", "map[")):
            zero = {"string": "", "integer": 0, "number": 0, "boolean": False}.get(kind)
        return lambda: zero

    def _zero_maker(self, name: str) -> Callable[[], JSONObject]:
        found = self._zeros.get(name)
        if found is None:
            makers: list[tuple[str, Callable[[], JSON]]] = []
            found = self._zeros[name] = lambda: {key: make() for key, make in makers}
            marks = go_fields(name)
            for key, schema in self._schemas.definitions[name].get("properties", {}).items():
                go = marks.get(key, _POINTER)
                if go.mark in _ALWAYS:
                    makers.append((key, self._always(schema, go)))
        return found


def schema_type(schema: JSONObject) -> str:
    """Return the type that a schema names, without `null`; empty when it names none.

    >>> schema_type({"type": ["string", "null"]})
    'string'
    """
    found = schema.get("type", "")
    if isinstance(found, list):
        found = next((item for item in found if item != "null"), "")
    return str(found)


def _go_name(definition: str) -> str:
    package, _, name = definition.rpartition(".")
    return f"{package.rpartition('.')[2]}.{name}"


def _struct_decoder(fields: Mapping[str, _Field], definition: str) -> Decoder:
    name = definition.rpartition(".")[2]
    always = tuple((key, field.always) for key, field in fields.items() if field.always is not None)
    scalars = {key: field.scalar for key, field in fields.items() if field.scalar is not None}
    nested = {key: field.nested for key, field in fields.items() if field.nested is not None}
    leaving = frozenset(key for key, field in fields.items() if field.go.mark == "zero")
    # an empty list that is always written is null after it was stored
    nulled = frozenset(key for key, field in fields.items() if field.go.mark == "never" and field.scalar is None)

    def decode(value: JSON, place: Place, problems: Problems) -> JSON:
        found: JSONObject = {}
        key = ""
        try:
            for key, item in value.items():
                if item is None:
                    if key not in fields:
                        problems.append(f'unknown field "{place_text((place, key))}"')
                    continue
                reader = scalars.get(key)
                if reader is not None:
                    read = reader(item)
                elif key in nested:
                    read = nested[key](item, (place, key), problems)
                else:
                    problems.append(f'unknown field "{place_text((place, key))}"')
                    continue
                if read or (key not in leaving and key not in nulled):
                    found[key] = read
        except MismatchError as error:
            go = fields[key].go
            raise error.within(name, fields[key].path + key, go.type) from None
        for key, make in always:
            if key not in found:
                found[key] = make()
        return found

    return decode


def _scalar_list(reader: Reader, go_type: str, element: str) -> Decoder:
    def decode(value: JSON, place: Place, problems: Problems) -> JSON:
        if type(value) is not list:
            raise MismatchError(json_kind(value), go_type)
        try:
            return [reader("" if item is None else item) for item in value]
        except MismatchError as error:
            raise MismatchError(error.found, error.wanted or element) from None

    return decode


def _scalar_map(reader: Reader, go_type: str, element: str) -> Decoder:
    def decode(value: JSON, place: Place, problems: Problems) -> JSON:
        if type(value) is not dict:
            raise MismatchError(json_kind(value), go_type)
        try:
            return {key: reader("" if item is None else item) for key, item in value.items()}
        except MismatchError as error:
            raise MismatchError(error.found, error.wanted or element) from None

    return decode
