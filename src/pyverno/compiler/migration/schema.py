"""Types of fields, as far as schemas declare them: what a value can be, and how it can be missing.

The converter writes CEL for objects that an API server has decoded and completed. There an `omitempty` field is never
null and never zero, a required one is always there, and a list without `omitempty` can be null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from pyverno.compiler.cel.typechecking import Schemas, custom_schemas, known_schemas
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import GoField, go_fields, schema_set
from pyverno.value import dataclass, replace

__all__ = ["ANY", "Presence", "Schema", "SchemaBook", "Shape"]

_PREFIX: Final = "io.k8s.apimachinery.pkg."
_SHAPES_BY_NAME: Final[Mapping[str, str]] = {
    f"{_PREFIX}util.intstr.IntOrString": "int-or-string",
    f"{_PREFIX}api.resource.Quantity": "quantity",
    f"{_PREFIX}apis.meta.v1.Time": "time",
    f"{_PREFIX}apis.meta.v1.MicroTime": "time",
    f"{_PREFIX}runtime.RawExtension": "any",
}
_NEVER_EMPTY: Final = frozenset({"containers", "verbs", "paths", "selector", "accessModes", "scaleTargetRef"})
"""Fields without `omitempty` that validation wants to be filled, so that null does not reach admission."""

_VALIDATED: Final = frozenset({("Container", "image"), ("EphemeralContainer", "image")})
"""Fields that validation wants although the schema calls them optional."""

_ALWAYS_AT_ROOT: Final = ("apiVersion", "kind", "metadata")
_OBJECT_META: Final = f"{_PREFIX}apis.meta.v1.ObjectMeta"


class Shape(StrEnum):
    """The shape of a value: a scalar, a list, an object with named fields, a map with free keys, or anything."""

    STRING = "string"
    INT = "integer"
    NUMBER = "number"
    BOOL = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    TIME = "time"
    LIST = "list"
    OBJECT = "object"
    MAP = "map"
    ANY = "any"


class Presence(StrEnum):
    """The ways in which a field can be missing from an admitted object.

    `REQUIRED` is always there. `NONZERO` is left out when it is empty, false or 0, so it is never that. `OPTIONAL` can
    be missing and can hold a zero. `UNKNOWN` is the answer for what no schema describes.
    """

    REQUIRED = "required"
    NONZERO = "nonzero"
    OPTIONAL = "optional"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The type of a value, and how it can be missing where it is.

    `is_nullable` is true where null reaches admission. `enum` are the only values, if there is such a list.
    `merge_keys` identify the elements of a list that merges.
    """

    shape: Shape
    presence: Presence = Presence.UNKNOWN
    is_nullable: bool = False
    enum: tuple[JSON, ...] = ()
    merge_keys: tuple[str, ...] = ()
    is_atomic: bool = False
    body: JSONObject | None = None
    definition: str = ""
    _book: SchemaBook | None = None

    def field(self, name: str) -> Schema:
        """Return the schema of a field of an object, or of an entry of a map.

        >>> pod = SchemaBook().of("", "v1", "Pod")
        >>> pod.field("spec").field("hostNetwork").presence
        <Presence.NONZERO: 'nonzero'>
        """
        return ANY if self._book is None else self._book.field_of(self, name)

    @property
    def element(self) -> Schema:
        """The schema of a list's elements.

        >>> SchemaBook().of("", "v1", "Pod").at("spec", "containers").element.field("image").shape
        <Shape.STRING: 'string'>
        """
        if self._book is None:
            # the result of a function, such as split
            items = (self.body or {}).get("items")
            return Schema(Shape.STRING, Presence.REQUIRED) if items == {"type": "string"} else ANY
        return self._book.element_of(self)

    @property
    def values(self) -> Schema:
        """The schema of a map's values.

        >>> SchemaBook().of("", "v1", "Pod").at("metadata", "labels").values.shape
        <Shape.STRING: 'string'>
        """
        return ANY if self._book is None else self._book.values_of(self)

    @property
    def names(self) -> Sequence[str]:
        """The names of an object's fields; none for maps and scalars."""
        return tuple((self.body or {}).get("properties") or ())

    @property
    def is_open(self) -> bool:
        """Whether an object keeps fields that the schema does not name."""
        return not self.names or bool((self.body or {}).get("x-kubernetes-preserve-unknown-fields"))

    @property
    def is_scalar(self) -> bool:
        """Whether the value is certainly not a list, an object or a map."""
        return self.shape not in (Shape.LIST, Shape.OBJECT, Shape.MAP, Shape.ANY)

    @property
    def is_known(self) -> bool:
        """Whether a schema describes the value."""
        return self.shape is not Shape.ANY

    @property
    def can_be_missing(self) -> bool:
        """Whether the field is absent from some admitted objects."""
        return self.presence is not Presence.REQUIRED

    def at(self, *names: str) -> Schema:
        """Return the schema at a path of field names; a list on the way stands for its elements."""
        found = self
        for name in names:
            found = (found.element if found.shape is Shape.LIST else found).field(name)
        return found


ANY: Final = Schema(Shape.ANY, Presence.UNKNOWN, is_nullable=True)
"""The schema of an undescribed value, which can be missing, null, or of any type."""


class SchemaBook:
    """The schemas of Kubernetes' kinds, and of CustomResourceDefinitions."""

    def __init__(self, kube_version: str = "1.35", crds: Iterable[JSONObject] = ()) -> None:
        """Take the Kubernetes version whose schemas count, and the definitions of custom kinds."""
        self.kube_version = kube_version
        self.definitions = tuple(crds)
        self.inferred: tuple[JSONObject, ...] = ()
        self._builtin = schema_set(kube_version)
        self.schemas: Schemas = known_schemas(self._builtin, self.definitions)
        self._custom = {gvk for crd in self.definitions for gvk, _ in custom_schemas(crd)}

    def with_inferred(self, definitions: Sequence[JSONObject]) -> SchemaBook:
        """Return a book that also has definitions of kinds that rules and examples show, and nothing else.

        Their plural names and scopes are guesses.
        """
        if not definitions:
            return self
        made = SchemaBook(self.kube_version, (*self.definitions, *definitions))
        made.inferred = (*self.inferred, *definitions)
        return made

    def is_inferred(self, group: str, kind: str) -> bool:
        """Return whether only rules and examples describe a kind."""
        written = (each["spec"] for each in self.inferred)
        return any((each["group"], each["names"]["kind"]) == (group, kind) for each in written)

    def of(self, group: str, version: str, kind: str) -> Schema:
        """Return the schema of a kind's objects, `ANY` when it is not known.

        >>> SchemaBook().of("example.com", "v1", "Widget") is ANY
        True
        """
        body = self.schemas.find(GVK(group, version, kind))
        if body is None:
            return ANY
        definition = "" if GVK(group, version, kind) in self._custom else self._builtin.kinds[group, version, kind]
        return Schema(Shape.OBJECT, Presence.REQUIRED, body=body, definition=definition, _book=self)

    def definition(self, name: str) -> Schema:
        """Return the schema of a definition by its name.

        >>> SchemaBook().definition("io.k8s.api.core.v1.PodSpec").field("containers").presence
        <Presence.REQUIRED: 'required'>
        """
        return self._read({"$ref": name}, Presence.REQUIRED, None)

    def schema_of(self, body: JSONObject) -> Schema:
        """Return a schema that is written out.

        >>> SchemaBook().schema_of({"type": "object", "properties": {"a": {"type": "integer"}}}).field("a").shape
        <Shape.INT: 'integer'>
        """
        return self._read(body, Presence.REQUIRED, None)

    def any_object(self) -> Schema:
        """Return the schema of objects of which only the metadata are known.

        >>> SchemaBook().any_object().at("metadata", "labels").shape, SchemaBook().any_object().field("spec") is ANY
        (<Shape.MAP: 'map'>, True)
        """
        fields: JSONObject = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        fields["metadata"] = {"$ref": _OBJECT_META}
        return self.schema_of({"type": "object", "properties": fields, "x-kubernetes-preserve-unknown-fields": True})

    # ---------------------------------------------------------------------------------------------- used by `Schema`

    def field_of(self, holder: Schema, name: str) -> Schema:
        """Return the schema of a field or entry; `ANY` where none is described."""
        body = holder.body or {}
        below = (body.get("properties") or {}).get(name)
        if below is None:
            return self.values_of(holder) if holder.shape is Shape.MAP else ANY
        mark = go_fields(holder.definition).get(name) if holder.definition else None
        presence = self._presence(holder, name, mark)
        if "metadata" == name and "apiVersion" in (body.get("properties") or {}) and "$ref" not in below:
            below = {"$ref": _OBJECT_META}
        found = self._read(below, presence, mark)
        return replace(found, is_nullable=False) if name in _NEVER_EMPTY and mark is not None else found

    def element_of(self, holder: Schema) -> Schema:
        """Return the schema of a list's elements."""
        items = (holder.body or {}).get("items")
        return self._read(items, Presence.REQUIRED, None) if isinstance(items, dict) else ANY

    def values_of(self, holder: Schema) -> Schema:
        """Return the schema of a map's values."""
        below = (holder.body or {}).get("additionalProperties")
        return self._read(below, Presence.OPTIONAL, None) if isinstance(below, dict) else ANY

    def _presence(self, holder: Schema, name: str, mark: GoField | None) -> Presence:
        body = holder.body or {}
        if name in (body.get("required") or ()):
            return Presence.REQUIRED
        if name in _ALWAYS_AT_ROOT and "apiVersion" in (body.get("properties") or {}):
            return Presence.REQUIRED
        if (holder.definition.rpartition(".")[2], name) in _VALIDATED:
            return Presence.REQUIRED
        if mark is not None and mark.mark == "zero":
            return Presence.NONZERO
        if name == "spec" and mark is not None and mark.mark == "struct" and "apiVersion" in body["properties"]:
            return Presence.REQUIRED
        # What Go always writes may still be missing from a manifest in a test: it counts as optional.
        return Presence.OPTIONAL

    def _read(self, written: JSONObject, presence: Presence, mark: GoField | None) -> Schema:
        reference = _reference(written)
        body = self._builtin.followed(written) if reference else written
        if body is None:
            return ANY
        shape = Shape(_SHAPES_BY_NAME.get(reference) or _shape(body))
        return Schema(
            shape,
            presence,
            is_nullable=_is_nullable(body, shape, mark, is_custom=mark is None and not reference),
            enum=tuple(body.get("enum") or ()),
            merge_keys=_merge_keys(body),
            is_atomic=body.get("x-kubernetes-list-type") == "atomic" or body.get("x-kubernetes-map-type") == "atomic",
            body=body,
            definition=reference,
            _book=self,
        )


def _reference(written: JSONObject) -> str:
    """Return the name of the definition that a schema refers to, an empty text for none."""
    inner: JSON = written.get("allOf") or []
    found = written.get("$ref") or (inner[0].get("$ref") if len(inner) == 1 else None)
    return found.rpartition("/")[2] if isinstance(found, str) else ""


def _shape(body: JSONObject) -> str:
    if body.get("x-kubernetes-int-or-string") or body.get("format") == "int-or-string":
        return "int-or-string"
    types = body.get("type")
    found = next((each for each in types if each != "null"), "") if isinstance(types, list) else types
    match found:
        case "array":
            return "list"
        case "object":
            return "object" if body.get("properties") else "map" if body.get("additionalProperties") else "any"
        case "string" if body.get("format") == "date-time":
            return "time"
        case "string" | "integer" | "number" | "boolean":
            return str(found)
    return "object" if body.get("properties") else "any"


def _is_nullable(body: JSONObject, shape: Shape, mark: GoField | None, *, is_custom: bool) -> bool:
    """Return whether null is a value of the field in an admitted object."""
    if mark is not None:
        is_nil = mark.mark == "never" and shape in (Shape.LIST, Shape.MAP)
        return mark.mark == "null" or is_nil or (shape is Shape.TIME and mark.mark != "nil")
    return is_custom and body.get("nullable") is True


def _merge_keys(body: JSONObject) -> tuple[str, ...]:
    if body.get("x-kubernetes-list-type") == "map":
        return tuple(body.get("x-kubernetes-list-map-keys") or ())
    key = body.get("x-kubernetes-patch-merge-key")
    return (key,) if isinstance(key, str) else ()
