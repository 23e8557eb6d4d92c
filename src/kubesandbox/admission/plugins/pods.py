"""The pod spec in a request, for the plugins that check pods."""

from __future__ import annotations

from collections.abc import Callable

from kubesandbox.attributes import Attributes
from pyverno.engine.request import Operation
from pyverno.kube.json import JSON, JSONObject

__all__ = ["CONTAINER_LISTS", "each_container", "is_pod_write", "pod_spec", "with_spec"]

CONTAINER_LISTS = ("containers", "initContainers")


def is_pod_write(attributes: Attributes, *operations: Operation) -> bool:
    """Return whether a request writes a pod itself, and no subresource of it."""
    return (
        attributes.type.key == "pods"
        and not attributes.subresource
        and attributes.operation in operations
        and isinstance(attributes.object, dict)
    )


def pod_spec(attributes: Attributes) -> JSONObject:
    """Return the pod spec in a request, empty without one."""
    spec = (attributes.object or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def with_spec(attributes: Attributes, spec: JSONObject) -> Attributes:
    """Return the request with another spec."""
    return attributes.with_object({**(attributes.object or {}), "spec": spec})


def each_container(spec: JSONObject, change: Callable[[JSONObject], JSONObject]) -> JSONObject:
    """Return a spec whose containers and init containers have been changed."""
    changed = dict(spec)
    for listed in CONTAINER_LISTS:
        found: JSON = spec.get(listed)
        if isinstance(found, list) and found:
            changed[listed] = [change(each) if isinstance(each, dict) else each for each in found]
    return changed
