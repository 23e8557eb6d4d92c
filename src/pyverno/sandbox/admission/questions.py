"""A request of the server as the engine and expressions see it: objects in one version, the namespace, the user.

This module must never judge.
"""

from __future__ import annotations

from pyverno.engine.request import Operation, Request
from pyverno.kube.gvk import GVK
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.status import StatusError, forbidden
from pyverno.sandbox.attributes import Attributes
from pyverno.sandbox.resources import ResourceType
from pyverno.sandbox.store import Key
from pyverno.sandbox.view import ClusterView

__all__ = ["converted", "kind_in", "labels_of", "namespace_object", "question", "refused", "shown_name"]


def question(
    attributes: Attributes, cluster: ClusterView, *, type: ResourceType | None = None, object: JSON = None
) -> Request:
    """Return the request as a question to the engine, in the version of `type` (by default its own).

    `object` is what stands for the object where it has been converted before.
    """
    seen = type or attributes.type
    found = namespace_object(attributes, cluster)
    new = object if object is not None else converted(attributes.object, attributes, seen, cluster)
    return Request(
        operation=attributes.operation,
        object=new,
        old=converted(attributes.old, attributes, seen, cluster),
        gvk=kind_in(attributes, seen),
        gvr=seen.gvr,
        subresource=attributes.subresource,
        name=attributes.name,
        namespace=attributes.namespace,
        user=attributes.user,
        namespace_labels=None if found is None else labels_of(found),
        namespace_object=found,
        dry_run=attributes.dry_run,
        admission=_admission(attributes),
    )


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


def converted(body: JSONObject | None, attributes: Attributes, type: ResourceType, cluster: ClusterView) -> JSON:
    """Return an object of the request in the version of another type; those of subresources' own kinds have one."""
    if body is None or type is attributes.type or attributes.kind != attributes.type.gvk:
        return body
    return cluster.to_version(type, body)


def namespace_object(attributes: Attributes, cluster: ClusterView) -> JSONObject | None:
    """Return the Namespace of a request; of one that is being written what it is going to be, of others the stored."""
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


def shown_name(attributes: Attributes) -> str:
    """Return the name that refusals show: of an object that has none yet, what it will begin with."""
    if attributes.name:
        return attributes.name
    metadata = (attributes.object or {}).get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


def refused(attributes: Attributes, why: str) -> StatusError:
    """Return the 403 with which a plugin refuses a request."""
    return forbidden(attributes.type.group, attributes.type.plural, shown_name(attributes), why)
