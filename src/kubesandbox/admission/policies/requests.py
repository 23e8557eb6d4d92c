"""A request of the server as the engine and expressions see it: objects in one version, the namespace, the user."""

from __future__ import annotations

from collections.abc import Mapping

from kubesandbox.attributes import Attributes
from kubesandbox.storage.store import Key
from kubesandbox.types.resources import ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation, Request
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject, encode
from pyverno.kube.status import StatusError, forbidden

__all__ = ["Versions", "display_name", "go_struct", "kind_in", "labels_of", "namespace_object", "refused"]


class Versions:
    """The objects of one request in the versions of other types of its resource, each converted once.

    Objects of subresources' own kinds (Scale, Eviction) have one version.
    """

    __slots__ = ("_cluster", "_found", "_questions", "attributes")

    def __init__(self, attributes: Attributes, cluster: ClusterView) -> None:
        """Take the request and the converter."""
        self.attributes = attributes
        self._cluster = cluster
        self._found: dict[tuple[str, bool], JSONObject] = {}
        self._questions: dict[ResourceType, Request] = {}

    async def new(self, type: ResourceType) -> JSON:
        """Return the new object; raises StatusError 500 if it cannot be converted."""
        return await self._in_version(type, self.attributes.object, is_old=False)

    async def old(self, type: ResourceType) -> JSON:
        """Return the old object; raises StatusError 500 if it cannot be converted."""
        return await self._in_version(type, self.attributes.old, is_old=True)

    async def forth(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object in the version of another type."""
        return await self._cluster.in_version(type, body) if self._differs(type) else body

    async def back(self, type: ResourceType, body: JSONObject) -> JSONObject:
        """Return an object that is in the version of another type in the request's own."""
        return await self._cluster.in_version(self.attributes.type, body) if self._differs(type) else body

    async def question(self, type: ResourceType) -> Request:
        """Return the request as a question to the engine, in the version of a type.

        Raises StatusError 500 for objects that cannot be converted.
        """
        found = self._questions.get(type)
        if found is None:
            found = self._questions[type] = await self._question(type)
        return found

    async def _question(self, type: ResourceType) -> Request:
        attributes = self.attributes
        namespace = namespace_object(attributes, self._cluster)
        return Request(
            operation=attributes.operation,
            object=await self.new(type),
            old=await self.old(type),
            gvk=kind_in(attributes, type),
            gvr=type.gvr,
            subresource=attributes.subresource,
            name=attributes.name,
            namespace=attributes.namespace,
            user=attributes.user,
            namespace_labels=None if namespace is None else labels_of(namespace),
            namespace_object=namespace,
            dry_run=attributes.dry_run,
            admission=_admission(attributes),
        )

    def _differs(self, type: ResourceType) -> bool:
        own = self.attributes.type
        return type is not own and self.attributes.kind == own.gvk

    async def _in_version(self, type: ResourceType, body: JSONObject | None, *, is_old: bool) -> JSON:
        if body is None or not self._differs(type):
            return body
        key = (type.api_version, is_old)
        if key not in self._found:
            self._found[key] = await self._cluster.in_version(type, body)
        return self._found[key]


def _admission(attributes: Attributes) -> JSONObject:
    kind, resource = attributes.kind, attributes.type.gvr
    body: JSONObject = {
        "requestKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "requestResource": {"group": resource.group, "version": resource.version, "resource": resource.resource},
    }
    if attributes.subresource:
        body["requestSubResource"] = attributes.subresource
    if attributes.options is not None:
        body["options"] = attributes.options
    return body


def kind_in(attributes: Attributes, type: ResourceType) -> GVK:
    """Return the kind of the objects of a request in the version of another type."""
    if type is attributes.type or attributes.kind != attributes.type.gvk:
        return attributes.kind
    return type.gvk


def namespace_object(attributes: Attributes, cluster: ClusterView) -> JSONObject | None:
    """Return the Namespace of a request: the new one of a request that writes it, else the stored one."""
    if not attributes.namespace:
        return None
    if (
        attributes.type.key == "namespaces"
        and not attributes.subresource
        and attributes.operation is not (Operation.DELETE)
    ):
        return attributes.object
    found = cluster.get(Key("namespaces", "", attributes.namespace))
    return None if found is None else found.body


def labels_of(body: JSON) -> dict[str, str]:
    """Return the labels of an object, none when it has none."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def display_name(attributes: Attributes) -> str:
    """Return the name for refusals: for an object without a name, its `generateName`."""
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


def refused(attributes: Attributes, why: str) -> StatusError:
    """Return the 403 with which a plugin refuses a request."""
    return forbidden(attributes.type.group, attributes.type.plural, display_name(attributes), why)


def go_struct(fields: Mapping[str, JSON]) -> str:
    """Render fields as Go's `json.Marshal` renders a struct: compact, in their own order.

    >>> go_struct({"b": 1, "a": ["<"]})
    '{"b":1,"a":["\\\\u003c"]}'
    """
    return "{" + ",".join(f"{encode(key)}:{encode(value)}" for key, value in fields.items()) + "}"
