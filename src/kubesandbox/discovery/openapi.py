"""OpenAPI v3 of the served resources, for kubectl's validation, patches and `explain`.

The index names one document per group and version with the hash of its sources; a document is built at the first
request and kept as bytes. Documents of built-in versions are shared by all servers of a Kubernetes version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from hashlib import sha512
from typing import Final, TypeAlias

import orjson

from kubesandbox.discovery.openapi_paths import resource_paths
from kubesandbox.discovery.swagger import encode_swagger, swagger_document
from kubesandbox.schema.schemas import ObjectSchemas
from kubesandbox.types.resources import ResourceTable, ResourceType
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.schemas import SchemaSet, descriptions, schema_set

__all__ = ["OpenApi", "custom_name", "published_definition"]

NameOf: TypeAlias = Callable[[tuple[str, str, str]], str | None]
"""The name of the schema of a group, version and kind."""

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PREFIX: Final = "#/components/schemas/"
_ALWAYS: Final = tuple(f"{_META}.{name}" for name in ("DeleteOptions", "Patch", "Status"))
_SECURITY: Final[JSONObject] = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}
_GENERAL: Final = ("api", "apis", "version")


class OpenApi:
    """The OpenAPI documents of one state of a server.

    >>> from kubesandbox.types.resources import builtin_table
    >>> api = OpenApi(builtin_table("1.35"), ObjectSchemas("1.35"))
    >>> "apis/apps/v1" in api.index()["paths"]
    True
    >>> "/apis/apps/v1/deployments" in orjson.loads(api.document("apis/apps/v1"))["paths"]
    True
    """

    def __init__(self, table: ResourceTable, schemas: ObjectSchemas) -> None:
        self._table = table
        self._schemas = schemas
        self._documents: dict[str, bytes] = {}

    @cached_property
    def _names(self) -> dict[str, tuple[ResourceType, ...]]:
        """The types that each document describes; none for the general ones."""
        found: dict[str, tuple[ResourceType, ...]] = dict.fromkeys(_GENERAL, ())
        for group, versions in self._table.group_versions().items():
            if group:
                found[f"apis/{group}"] = ()
            for version in versions:
                found[_document_name(group, version)] = self._table.in_version(group, version)
        return found

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {name: self._hash(name, types) for name, types in self._names.items()}

    def _hash(self, name: str, types: tuple[ResourceType, ...]) -> str:
        """Return the hash of a document's sources, without building the document."""
        made_of = sha512(f"{self._schemas.kube_version}\n{name}\n{types!r}".encode())
        for type_ in types:
            custom = self._schemas.custom(type_)
            if custom is not None:
                made_of.update(orjson.dumps(custom.schema))
        return made_of.hexdigest().upper()

    def index(self) -> JSONObject:
        """Return the document of `/openapi/v3`."""
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
            for name, digest in sorted(self._hashes.items())
        }
        return {"paths": paths}

    def etag(self, name: str) -> str:
        """Return the quoted hash of a document, of the index for the empty name; raises KeyError for others."""
        if not name:
            return f'"{sha512(repr(self._hashes).encode()).hexdigest().upper()}"'
        return f'"{self._hashes[name]}"'

    def document(self, name: str) -> bytes:
        """Return a document (`api/v1`, `apis/apps/v1`); raises KeyError when there is none of that name."""
        known = self._documents.get(name)
        if known is None:
            types, version = self._names[name], self._schemas.definitions.version
            if any(type_.is_custom for type_ in types):
                known = self._custom_document(types, version)
            else:
                known = _builtin_document(name, types, version)
            self._documents[name] = known
        return known

    def swagger(self, *, is_json: bool) -> bytes:
        """Return the document of `/openapi/v2`, as JSON or as protobuf."""
        name = "v2.json" if is_json else "v2"
        known = self._documents.get(name)
        if known is None:
            document = swagger_document(self._components(), self._schemas.definitions.version)
            known = orjson.dumps(document) if is_json else encode_swagger(document)
            self._documents[name] = known
        return known

    def _components(self) -> dict[str, JSONObject]:
        """Return the schemas of everything that is served."""
        schemas = schema_set(self._schemas.definitions.version)
        wanted, custom = set(_ALWAYS), list[ResourceType]()
        for types in self._names.values():
            custom += [type_ for type_ in types if type_.is_custom]
            wanted |= _schema_names(tuple(type_ for type_ in types if not type_.is_custom), schemas)
        found = _closure(wanted, schemas)
        for type_ in custom:
            own = self._schemas.custom(type_)
            found.update(_custom_components(type_, own.schema if own is not None else {}))
        return found

    def _custom_document(self, types: tuple[ResourceType, ...], version: str) -> bytes:
        schemas = schema_set(version)
        components: dict[str, JSONObject] = {}
        for type_ in types:
            custom = self._schemas.custom(type_)
            components.update(_custom_components(type_, custom.schema if custom is not None else {}))
        wanted = {*_ALWAYS, f"{_META}.ObjectMeta", f"{_META}.ListMeta"}
        if any("scale" in type_.subresources for type_ in types):
            wanted.add("io.k8s.api.autoscaling.v1.Scale")
        components.update(_closure(wanted, schemas))
        return _assemble(types, components, version, lambda gvk: custom_name(gvk[0], gvk[1], gvk[2]))


def _document_name(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@lru_cache(maxsize=256)
def _builtin_document(name: str, types: tuple[ResourceType, ...], version: str) -> bytes:
    schemas = schema_set(version)
    kinds = schemas.kinds
    if not types:
        path = f"/{name}/" if name != "version" else "/version/"
        responses = {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}}
        paths: JSONObject = {path: {"get": {"tags": [name.partition("/")[0]], "responses": responses}}}
        return _document(paths, {}, version)
    return _assemble(types, _closure({*_ALWAYS, *_schema_names(types, schemas)}, schemas), version, kinds.get)


def _schema_names(types: tuple[ResourceType, ...], schemas: SchemaSet) -> set[str]:
    """Return the names of the schemas of types, of their subresources and lists."""
    kinds, wanted = schemas.kinds, set[str]()
    for type_ in types:
        gvks = [type_.gvk, *(type_.subresource_gvk(sub) for sub in type_.subresources)]
        rows = [(gvk.group, gvk.version, gvk.kind) for gvk in gvks]
        rows.append((type_.group, type_.version, type_.list_kind))
        wanted.update(kinds[row] for row in rows if row in kinds)
    return wanted


def _assemble(
    types: tuple[ResourceType, ...], components: Mapping[str, JSONObject], version: str, name_of: NameOf
) -> bytes:
    paths: JSONObject = {}
    for type_ in types:
        paths.update(resource_paths(type_, lambda gvk: _reference(name_of(gvk), components)))
    return _document(dict(sorted(paths.items())), components, version)


def _reference(name: str | None, components: Mapping[str, JSONObject]) -> JSONObject:
    return {"$ref": _PREFIX + name} if name and name in components else {"type": "object"}


def _document(paths: JSONObject, components: Mapping[str, JSONObject], version: str) -> bytes:
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{version}"},
        "paths": paths,
        "components": {"schemas": dict(sorted(components.items())), "securitySchemes": _SECURITY},
    }
    return orjson.dumps(document)


def _closure(names: set[str], schemas: SchemaSet) -> dict[str, JSONObject]:
    """Return the published form of definitions and of all definitions that they refer to."""
    found: dict[str, JSONObject] = {}
    waiting = [name for name in names if name in schemas.definitions]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = published_definition(schemas, name)
            waiting += _references(schemas.definitions[name])
    return found


def _references(schema: JSONObject) -> Iterator[str]:
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"]
    for value in (schema.get("properties") or {}).values():
        yield from _references(value)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _references(schema[key])


def published_definition(schemas: SchemaSet, name: str) -> JSONObject:
    """Return a definition as an API server publishes it, with the texts that explain it.

    >>> published_definition(schema_set("1.35"), "io.k8s.api.core.v1.ConfigMap")["properties"]["immutable"]["type"]
    'boolean'
    """
    texts = descriptions(schemas.version, name)
    published = _publish(schemas.definitions[name])
    for key, field in published.get("properties", {}).items():
        if key in texts:
            field["description"] = texts[key]
    if "" in texts:
        published = {"description": texts[""], **published}
    return published


def _publish(schema: JSONObject) -> JSONObject:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        marks = {key: value for key, value in schema.items() if key != "$ref"}
        return {"allOf": [{"$ref": _PREFIX + reference}], **marks}
    found: JSONObject = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, list):
            found[key] = next((item for item in value if item != "null"), "object")
        elif key == "properties":
            found[key] = {name: _publish(field) for name, field in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _publish(value)
        elif key == "oneOf":
            found[key] = [_publish(item) for item in value]
        elif key == "enum" and len(value) == 1 and isinstance(value[0], str):
            continue  # the package that the schemas come from pins `apiVersion` and `kind`
        else:
            found[key] = value
    return found


def custom_name(group: str, version: str, kind: str) -> str:
    """Return the name of the schema of a custom resource.

    >>> custom_name("kyverno.io", "v1", "ClusterPolicy")
    'io.kyverno.v1.ClusterPolicy'
    """
    return ".".join((*reversed(group.split(".")), version, kind))


def _custom_components(type_: ResourceType, schema: JSONObject) -> Iterator[tuple[str, JSONObject]]:
    """Yield the schemas of a custom resource and of its list; metadata is that of all objects."""
    name = custom_name(type_.group, type_.version, type_.kind)
    identity = {"group": type_.group, "version": type_.version}
    own: dict[str, JSON] = {
        "apiVersion": {"type": "string", "description": _TEXTS["apiVersion"]},
        "kind": {"type": "string", "description": _TEXTS["kind"]},
    }
    metadata = {"allOf": [{"$ref": f"{_PREFIX}{_META}.ObjectMeta"}], "description": _TEXTS["metadata"]}
    whole = {
        **schema,
        "type": "object",
        "properties": {**(schema.get("properties") or {}), **own, "metadata": metadata},
        "x-kubernetes-group-version-kind": [{**identity, "kind": type_.kind}],
    }
    if not schema:
        whole["x-kubernetes-preserve-unknown-fields"] = True
    yield name, whole
    items = {"type": "array", "items": {"$ref": _PREFIX + name}, "description": f"List of {type_.plural}."}
    list_metadata = {"allOf": [{"$ref": f"{_PREFIX}{_META}.ListMeta"}], "description": "Standard list metadata."}
    yield (
        custom_name(type_.group, type_.version, type_.list_kind),
        {
            "description": f"{type_.list_kind} is a list of {type_.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {**own, "items": items, "metadata": list_metadata},
            "x-kubernetes-group-version-kind": [{**identity, "kind": type_.list_kind}],
        },
    )


_TEXTS: Final[Mapping[str, str]] = {
    "apiVersion": "The version of the schema of this object.",
    "kind": "The kind of this object.",
    "metadata": "Standard object's metadata.",
}
