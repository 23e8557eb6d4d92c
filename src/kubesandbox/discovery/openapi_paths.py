"""The paths of a resource in OpenAPI, with their operations.

kubectl reads from the PATCH operation whether a type exists, whether the server validates fields, and the accepted
patch types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSONObject

__all__ = ["Reference", "resource_paths"]

Reference: TypeAlias = Callable[[tuple[str, str, str]], JSONObject]
"""The schema that stands for a group, version and kind."""

_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCH_SCHEMA: Final[JSONObject] = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}
_OPTIONS_SCHEMA: Final[JSONObject] = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"}
_STATUS_SCHEMA: Final[JSONObject] = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Status"}
_MEDIA: Final = ("application/json", "application/yaml")


def _query(name: str, text: str, kind: str = "string") -> JSONObject:
    return {"name": name, "in": "query", "description": text, "schema": {"type": kind, "uniqueItems": True}}


_DRY_RUN: Final = _query("dryRun", "`All`: do everything but store the result")
_WRITE: Final = (
    _DRY_RUN,
    _query("fieldManager", "the name of the manager of the changes, at most 128 printable characters"),
    _query(
        "fieldValidation",
        "what to do about unknown and duplicate fields: `Ignore`, `Warn` (default) or `Strict`, which refuses them",
    ),
)
_FORCE: Final = _query("force", "take over fields that others own; for apply only", "boolean")
_LIST: Final = (
    _query("allowWatchBookmarks", "send bookmarks on a watch", "boolean"),
    _query("continue", "the token of the last page"),
    _query("fieldSelector", "select objects by their fields"),
    _query("labelSelector", "select objects by their labels"),
    _query("limit", "how many objects a page has", "integer"),
    _query("resourceVersion", "the version to list or watch from"),
    _query("resourceVersionMatch", "how `resourceVersion` is meant"),
    _query("sendInitialEvents", "begin a watch with what is there", "boolean"),
    _query("timeoutSeconds", "how long a list or watch may take", "integer"),
    _query("watch", "watch instead of listing", "boolean"),
)
_DELETE: Final = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "how long the object may take to end", "integer"),
    _query("orphanDependents", "deprecated: use `propagationPolicy`", "boolean"),
    _query("propagationPolicy", "what becomes of dependents: `Orphan`, `Background` or `Foreground`"),
)
_SUBRESOURCE_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("status", "scale", "ephemeralcontainers", "resize", "approval"), ("get", "put", "patch")),
    **dict.fromkeys(("eviction", "binding", "token"), ("post",)),
    "finalize": ("put",),
    "log": ("get",),
}


def resource_paths(type_: ResourceType, reference: Reference) -> dict[str, JSONObject]:
    """Return the paths of a resource with their operations; `reference` gives the schemas of kinds."""
    root = f"/apis/{type_.group}/{type_.version}" if type_.group else f"/api/{type_.version}"
    maker = _Operations(type_, reference)
    paths: dict[str, JSONObject] = {}
    collection = f"{root}/namespaces/{{namespace}}/{type_.plural}" if type_.namespaced else f"{root}/{type_.plural}"
    if type_.namespaced and "list" in type_.verbs:
        paths[f"{root}/{type_.plural}"] = {"get": maker.list(everywhere=True), "parameters": []}
    paths[collection] = {**maker.collection(), "parameters": maker.place(named=False)}
    item = maker.item()
    if item:
        paths[f"{collection}/{{name}}"] = {**item, "parameters": maker.place(named=True)}
    for subresource in type_.subresources:
        operations = maker.subresource(subresource)
        if operations:
            paths[f"{collection}/{{name}}/{subresource}"] = {**operations, "parameters": maker.place(named=True)}
    return paths


class _Operations:
    """Makes the operations of one resource."""

    def __init__(self, type_: ResourceType, reference: Reference) -> None:
        self._type = type_
        self._reference = reference
        self._schema = reference((type_.group, type_.version, type_.kind))
        self._list_schema = reference((type_.group, type_.version, type_.list_kind))
        group = "".join(part.capitalize() for part in type_.group.removesuffix(".k8s.io").split(".")) or "Core"
        self._id = group + type_.version.capitalize() + ("Namespaced" if type_.namespaced else "")

    def place(self, *, named: bool) -> list[JSONObject]:
        """Return the parameters of a path."""
        found = []
        rows = [("name", f"name of the {self._type.kind}")] if named else []
        if self._type.namespaced:
            rows.append(("namespace", "object name and auth scope, such as for teams and projects"))
        for name, text in rows:
            schema = {"type": "string", "uniqueItems": True}
            found.append({"name": name, "in": "path", "description": text, "required": True, "schema": schema})
        return found

    def list(self, *, everywhere: bool = False) -> JSONObject:
        """Return the operation that lists objects."""
        name = f"list{self._id}{self._type.kind}" + ("ForAllNamespaces" if everywhere else "")
        text = f"list or watch objects of kind {self._type.kind}"
        return {**self._operation("list", name, text, self._list_schema), "parameters": list(_LIST)}

    def collection(self) -> JSONObject:
        """Return the operations of the path of all objects."""
        type_ = self._type
        found: JSONObject = {}
        if "list" in type_.verbs:
            found["get"] = self.list()
        if "create" in type_.verbs:
            operation = self._operation("post", f"create{self._id}{type_.kind}", f"create a {type_.kind}", self._schema)
            found["post"] = {**operation, "parameters": list(_WRITE), "requestBody": _body(self._schema)}
        if "deletecollection" in type_.verbs:
            name = f"delete{self._id}Collection{type_.kind}"
            text = f"delete collection of {type_.kind}"
            operation = self._operation("deletecollection", name, text, _STATUS_SCHEMA)
            found["delete"] = {**operation, "parameters": [*_DELETE, *_LIST], "requestBody": _body(_OPTIONS_SCHEMA)}
        return found

    def item(self) -> JSONObject:
        """Return the operations of the path of one object."""
        type_ = self._type
        found: JSONObject = {}
        if "get" in type_.verbs:
            found["get"] = self._operation("get", f"read{self._id}{type_.kind}", f"read a {type_.kind}", self._schema)
        if "update" in type_.verbs:
            found["put"] = self._put("", self._schema)
        if "patch" in type_.verbs:
            found["patch"] = self._patch("", self._schema)
        if "delete" in type_.verbs:
            name, text = f"delete{self._id}{type_.kind}", f"delete a {type_.kind}"
            operation = self._operation("delete", name, text, _STATUS_SCHEMA)
            found["delete"] = {**operation, "parameters": list(_DELETE), "requestBody": _body(_OPTIONS_SCHEMA)}
        return found

    def subresource(self, name: str) -> JSONObject:
        """Return the operations of a subresource, none for those that are not objects."""
        gvk = self._type.subresource_gvk(name)
        kind = (gvk.group, gvk.version, gvk.kind)
        schema = self._reference(kind)
        found: JSONObject = {}
        for method in _SUBRESOURCE_VERBS.get(name, ()):
            if method == "get":
                text = f"read {name} of a {self._type.kind}"
                action = self._operation("get", f"read{self._id}{self._type.kind}{name.capitalize()}", text, schema)
            elif method == "put":
                action = self._put(name, schema)
            elif method == "patch":
                action = self._patch(name, schema)
            else:
                title = f"create{self._id}{self._type.kind}{name.capitalize()}"
                action = self._operation("post", title, f"create {name} of a {self._type.kind}", schema)
                action = {**action, "parameters": list(_WRITE), "requestBody": _body(schema)}
            action["x-kubernetes-group-version-kind"] = dict(zip(("group", "version", "kind"), kind, strict=True))
            found[method] = action
        return found

    def _put(self, subresource: str, schema: JSONObject) -> JSONObject:
        name = f"replace{self._id}{self._type.kind}{subresource.capitalize()}"
        operation = self._operation("put", name, f"replace a {self._type.kind}", schema)
        return {**operation, "parameters": list(_WRITE), "requestBody": _body(schema)}

    def _patch(self, subresource: str, schema: JSONObject) -> JSONObject:
        name = f"patch{self._id}{self._type.kind}{subresource.capitalize()}"
        media = _PATCHES if self._type.is_custom else (*_PATCHES, _STRATEGIC)
        body = {"content": {each: {"schema": _PATCH_SCHEMA} for each in media}, "required": True}
        operation = self._operation("patch", name, f"partially update a {self._type.kind}", schema)
        return {**operation, "parameters": [*_WRITE, _FORCE], "requestBody": body}

    def _operation(self, action: str, name: str, text: str, schema: JSONObject) -> JSONObject:
        type_ = self._type
        content = {each: {"schema": schema} for each in _MEDIA}
        codes = {"post": ("200", "201", "202"), "put": ("200", "201"), "patch": ("200", "201")}.get(action, ("200",))
        responses: JSONObject = {code: {"description": _CODES[code], "content": content} for code in codes}
        responses["401"] = {"description": "Unauthorized"}
        return {
            "tags": [f"{type_.group or 'core'}_{type_.version}"],
            "description": text,
            "operationId": name,
            "responses": responses,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": type_.group, "version": type_.version, "kind": type_.kind},
        }


_CODES: Final[Mapping[str, str]] = {"200": "OK", "201": "Created", "202": "Accepted"}


def _body(schema: JSONObject) -> JSONObject:
    return {"content": {"*/*": {"schema": schema}}, "required": True}
