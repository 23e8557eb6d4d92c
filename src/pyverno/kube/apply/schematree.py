"""Schema trees: how the values of a type merge, field by field, as atomic values, maps, sets or lists with keys.

A type may allow several shapes (a number or a text, anything at all); the value decides. Types come from the schemas of
built-in kinds or from a CustomResourceDefinition and are computed lazily, by the rules with which an API server turns
OpenAPI into structured-merge-diff's schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType

from pyverno.errors import PatchError
from pyverno.kube.apply.fieldset import key_step, value_step
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.schemas import SchemaSet, schema_set

__all__ = ["ANYTHING", "OPAQUE", "ListType", "MapType", "SchemaTree", "schema_tree_for", "schema_tree_of"]

_NO_DEFINITIONS: Mapping[str, JSONObject] = MappingProxyType({})
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_UNTYPED_NAMES = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
)
_ATOMIC_NAMES = ("io.k8s.apimachinery.pkg.runtime.RawExtension",)
_ZEROS: Mapping[str, JSON] = {"string": "", "integer": 0}


class ListType:
    """A list: atomic, a set, or items identified by `keys`; `defaults` stand for keys that an item leaves out."""

    __slots__ = ("defaults", "element", "is_atomic", "keys")

    def __init__(self, *, is_atomic: bool, keys: tuple[str, ...], defaults: JSONObject, element: SchemaTree) -> None:
        """Take the parts."""
        self.is_atomic = is_atomic
        self.keys = keys
        self.defaults = defaults
        self.element = element

    def step(self, item: JSON) -> str:
        """Return the step of a path to an item (see `fieldset`); raises PatchError for one without an identity."""
        if not self.keys:
            if item is None:
                raise PatchError("associative list without keys has an element that's an explicit null")
            if isinstance(item, dict):
                raise PatchError("associative list without keys has an element that's a map type")
            if isinstance(item, list):
                raise PatchError("not supported: associative list with lists as elements")
            return value_step(item)
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise PatchError(f"associative list with keys may not have {what}")
        known = {**self.defaults, **item} if self.defaults else item
        keys = {key: known[key] for key in self.keys if key in known}
        if not keys:
            listed = " ".join(map(encode, self.keys))
            raise PatchError(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_step(keys)


class MapType:
    """A map: atomic, or named fields and (or) entries of one type; `element` is None where only fields are allowed."""

    __slots__ = ("_fields", "_names", "_parent", "element", "is_atomic")

    def __init__(self, parent: SchemaTree, names: JSONObject, *, is_atomic: bool, element: SchemaTree | None) -> None:
        """Take the schemas of the fields, which become types at their first use."""
        self._parent = parent
        self._names = names
        self._fields: dict[str, SchemaTree] = {}
        self.is_atomic = is_atomic
        self.element = element

    def field(self, name: str) -> SchemaTree | None:
        """Return the type of a named field."""
        if name not in self._names:
            return None
        found = self._fields.get(name)
        if found is None:
            found = self._fields[name] = self._parent.inner(self._names[name])
        return found

    def with_field(self, name: str, type: SchemaTree) -> MapType:
        """Return the map with a field of this type."""
        widened = MapType(self._parent, {**self._names, name: {}}, is_atomic=self.is_atomic, element=self.element)
        widened._fields = {**self._fields, name: type}
        return widened

    def child(self, name: str) -> SchemaTree | None:
        """Return the type of a field or an entry; None when there may be none of this name."""
        return self.field(name) or self.element


class SchemaTree:
    """One type; `scalar` is the kind of single values it allows (`string`, `numeric`, `boolean`, `untyped`) or None."""

    def __init__(
        self,
        schema: JSONObject,
        definitions: Mapping[str, JSONObject] = _NO_DEFINITIONS,
        *,
        keeps_unknown: bool = False,
        empty: JSONObject | None = None,
    ) -> None:
        """Take a schema; `keeps_unknown` allows fields that it does not name, for `empty` see `schema_tree_for`."""
        self._definitions = definitions
        self._schema, self._name = _resolve_reference(schema, definitions)
        self._keeps_unknown = keeps_unknown or self._schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.empty: JSONObject = empty or {}
        self.is_builtin = bool(definitions)

    @property
    def _type(self) -> str:
        if self._schema.get("x-kubernetes-int-or-string") is True:
            return ""
        return _type_name(self._schema)

    @cached_property
    def scalar(self) -> str | None:
        """The kind of single values that the type allows."""
        if self._name in _UNTYPED_NAMES:
            return "untyped"
        if self._type in ("object", "array"):
            return None
        if self._type == "string":
            return "string" if self._schema.get("format", "") in ("", "byte") else "untyped"
        return _SCALARS.get(self._type, "untyped")

    @cached_property
    def list(self) -> ListType | None:
        """The merge rules of lists of the type; None when it allows none."""
        if self._type not in ("", "array") or self._name in _UNTYPED_NAMES:
            return None
        items = self._schema.get("items")
        if not isinstance(items, dict) or self._name in _ATOMIC_NAMES:
            return ListType(is_atomic=True, keys=(), defaults={}, element=OPAQUE)
        element = self.inner(items)
        is_atomic, keys = _list_relationship(self._schema)
        return ListType(is_atomic=is_atomic, keys=keys, defaults=element.key_defaults(keys), element=element)

    @cached_property
    def map(self) -> MapType | None:
        """The merge rules of maps of the type; None when it allows none."""
        if self._type not in ("", "object") or self._name in _UNTYPED_NAMES:
            return None
        properties = self._schema.get("properties")
        names = properties if isinstance(properties, dict) else {}
        is_atomic = self._schema.get("x-kubernetes-map-type") == "atomic" or self._name in _ATOMIC_NAMES
        return MapType(self, names, is_atomic=is_atomic, element=self._entries(names))

    def _entries(self, names: JSONObject) -> SchemaTree | None:
        more = self._schema.get("additionalProperties")
        if isinstance(more, dict):
            return self.inner(more) if more else ANYTHING
        if more is None:
            return ANYTHING if self._keeps_unknown or not names else None
        return ANYTHING if more is True else None

    def inner(self, schema: JSON) -> SchemaTree:
        """Return the type of a part of this one."""
        if not isinstance(schema, dict):
            return ANYTHING
        return SchemaTree(schema, self._definitions, keeps_unknown=self._keeps_unknown)

    def key_defaults(self, keys: tuple[str, ...]) -> JSONObject:
        """Return the defaults of keys that an item of a list omits."""
        properties = self._schema.get("properties")
        defaults: JSONObject = {}
        for key in keys:
            found = properties.get(key) if isinstance(properties, dict) else None
            if isinstance(found, dict) and "default" in found:
                defaults[key] = found["default"]
            elif self._definitions and key == "protocol":
                # the published schemas of built-in kinds leave defaults out; this is the only one that is not a zero
                defaults[key] = "TCP"
            elif self._definitions and isinstance(found, dict) and key in (self._schema.get("required") or ()):
                defaults[key] = _ZEROS.get(_type_name(found))
        return {key: value for key, value in defaults.items() if value is not None}

    @cached_property
    def _shapes(self) -> tuple[str, ...]:
        allowed = {"map": self.map, "scalar": self.scalar, "list": self.list}
        return tuple(shape for shape, form in allowed.items() if form is not None)

    def shape(self, value: JSON) -> str:
        """Return as what a value of this type is to be taken: `map`, `scalar` or `list`; nothing in itself is a map."""
        chosen = _SHAPES.get(value.__class__)
        if chosen in self._shapes and chosen is not None:
            return chosen
        return self._shapes[0] if self._shapes else "scalar"


_SHAPES: Mapping[type, str] = {
    dict: "map",
    list: "list",
    str: "scalar",
    int: "scalar",
    float: "scalar",
    bool: "scalar",
}


def _type_name(schema: JSONObject) -> str:
    """Return the type of a schema; those of built-in kinds allow null for most values as well."""
    found = schema.get("type")
    if isinstance(found, list):
        found = next((name for name in found if name != "null"), "")
    return found if isinstance(found, str) else ""


def _resolve_reference(schema: JSONObject, definitions: Mapping[str, JSONObject]) -> tuple[JSONObject, str]:
    """Return what a schema refers to, and its name; the place of use may declare that a map is one value."""
    name = ""
    found = schema
    for _ in range(8):
        reference = found.get("$ref")
        inner = found.get("allOf")
        if reference is None and isinstance(inner, list) and len(inner) == 1:
            reference = inner[0].get("$ref")
        if not isinstance(reference, str) or not definitions:
            break
        name = reference.rpartition("/")[2]
        relationship = schema.get("x-kubernetes-map-type")
        found = definitions.get(name, {})
        if relationship is not None:
            found = {**found, "x-kubernetes-map-type": relationship}
    return found, name


def _list_relationship(schema: JSONObject) -> tuple[bool, tuple[str, ...]]:
    """Return whether a list is one value, and the keys of its items; strategic merge's marks count where SSA's lack."""
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return False, ()
        case "map":
            return False, tuple(schema.get("x-kubernetes-list-map-keys") or ())
        case None if str(schema.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            key = schema.get("x-kubernetes-patch-merge-key")
            return False, (key,) if isinstance(key, str) else ()
        case _:
            return True, ()


class _Opaque(SchemaTree):
    """A value without known structure, treated as atomic."""

    def __init__(self) -> None:
        super().__init__({})

    @cached_property
    def map(self) -> MapType | None:
        return MapType(self, {}, is_atomic=True, element=self)


OPAQUE = _Opaque()
"""A value of an unknown type that is replaced as a whole."""
ANYTHING = SchemaTree({})
"""An unknown type: maps merge by keys, lists are atomic."""


@lru_cache(maxsize=512)
def _builtin(version: str, kind: GVK) -> SchemaTree:
    schemas = schema_set(version)
    schema = schemas.find(kind.group, kind.version, kind.kind)
    assert schema is not None  # noqa: S101 - the kind is known
    return SchemaTree(schema, schemas.definitions, empty=_empty(kind.kind, schema))


def schema_tree_for(schemas: SchemaSet, kind: GVK) -> SchemaTree:
    """Return the type of a built-in kind; a kind that is not known can be anything.

    `empty` is a new object of the kind: the parts that every such object has and no manager owns.

    >>> pods = schema_tree_for(schema_set("1.35"), GVK("", "v1", "Pod"))
    >>> pods.map.field("spec").map.field("containers").list.keys
    ('name',)
    """
    if schemas.find(kind.group, kind.version, kind.kind) is None:
        return ANYTHING
    return _builtin(schemas.version, kind)


def schema_tree_of(schema: JSON, schemas: SchemaSet | None = None) -> SchemaTree:
    """Return the type of a custom resource by the `openAPIV3Schema` of its version.

    Metadata is that of all objects, by default of the newest Kubernetes.

    >>> part = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    >>> widgets = schema_tree_of({"type": "object", "properties": {"spec": part}})
    >>> widgets.map.field("spec").list.is_atomic
    False
    """
    if not isinstance(schema, dict) or not schema:
        return ANYTHING
    meta = SchemaTree({"$ref": _OBJECT_META}, (schemas or schema_set()).definitions)
    return _Custom(schema, meta)


class _Custom(SchemaTree):
    """A custom resource: the type of its schema, with the fields that every object has."""

    def __init__(self, schema: JSONObject, meta: SchemaTree) -> None:
        super().__init__(schema)
        self._meta = meta

    @cached_property
    def map(self) -> MapType | None:
        properties = self._schema.get("properties")
        own = properties if isinstance(properties, dict) else {}
        names = {**own, "apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        element = self._entries(own)
        return MapType(self, names, is_atomic=False, element=element).with_field("metadata", self._meta)


# Structs of Go that are no pointers, beside `spec` and `status`, and lists that are always written.
_POD_TEMPLATE: JSONObject = {"metadata": {}, "spec": {"containers": None}}
_EMPTY_PARTS: Mapping[str, JSONObject] = {
    "Binding": {"target": {}},
    "CronJob": {"spec": {"jobTemplate": {"metadata": {}, "spec": {"template": _POD_TEMPLATE}}}},
    "CSINode": {"spec": {"drivers": None}},
    "ClusterRoleBinding": {"roleRef": {}},
    "CustomResourceDefinition": {"spec": {"names": {}}, "status": {"acceptedNames": {}}},
    "DaemonSet": {"spec": {"template": _POD_TEMPLATE, "updateStrategy": {}}},
    "Deployment": {"spec": {"template": _POD_TEMPLATE, "strategy": {}}},
    "Event": {"involvedObject": {}, "source": {}, "regarding": {}, "deprecatedSource": {}},
    "FlowSchema": {"spec": {"priorityLevelConfiguration": {}}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {}}},
    "Ingress": {"status": {"loadBalancer": {}}},
    "Job": {"spec": {"template": _POD_TEMPLATE}},
    "NetworkPolicy": {"spec": {"podSelector": {}}},
    "Node": {"status": {"daemonEndpoints": {"kubeletEndpoint": {}}, "nodeInfo": {}}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}},
    "Pod": {"spec": {"containers": None}},
    "PodTemplate": {"template": _POD_TEMPLATE},
    "ReplicaSet": {"spec": {"template": _POD_TEMPLATE}},
    "ResourceClaim": {"spec": {"devices": {}}},
    "ResourceClaimTemplate": {"spec": {"metadata": {}, "spec": {"devices": {}}}},
    "ResourceSlice": {"spec": {"pool": {}}},
    "RoleBinding": {"roleRef": {}},
    "Service": {"status": {"loadBalancer": {}}},
    "StatefulSet": {"spec": {"template": _POD_TEMPLATE, "updateStrategy": {}}},
    "VolumeAttachment": {"spec": {"source": {}}},
}


def _empty(kind: str, schema: JSONObject) -> JSONObject:
    known = schema.get("properties") or {}
    found: JSONObject = {name: {} for name in ("spec", "status") if name in known}
    parts = _EMPTY_PARTS.get(kind, {})
    return {**found, **{name: part for name, part in parts.items() if name in known}}
