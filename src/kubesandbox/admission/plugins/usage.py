"""The usage of an object: requests and limits of pods, and the amounts that quotas count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kubesandbox.types.resources import ResourceType
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.quantity import Quantity, try_quantity
from pyverno.kube.status import resource_name

__all__ = ["Amounts", "add", "amounts_of", "container_amounts", "pod_amounts", "usage_of"]

Amounts = dict[str, Quantity]
"""Amounts by the name of the resource (`cpu`, `requests.memory`, `pods`)."""

_ONE: Final = Quantity(1)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_ENDED: Final = frozenset({"Failed", "Succeeded"})
_COUNTED: Final = frozenset(
    {
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
    }
)
"""Resources that quotas know by their plain names as well."""


def amounts_of(value: JSON) -> Amounts:
    """Read a map of quantities; other values are left out.

    >>> {name: str(amount) for name, amount in amounts_of({"cpu": "500m", "memory": 1}).items()}
    {'cpu': '500m', 'memory': '1'}
    """
    found = {key: try_quantity(str(text)) for key, text in value.items()} if isinstance(value, dict) else {}
    return {key: amount for key, amount in found.items() if amount is not None}


def add(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Amounts:
    """Return the sum of amounts by name."""
    total = dict(left)
    for key, amount in right.items():
        total[key] = total[key].add(amount) if key in total else amount
    return total


def container_amounts(container: JSONObject, kind: str) -> Amounts:
    """Return the `requests` or `limits` of a container."""
    resources = container.get("resources")
    return amounts_of(resources.get(kind)) if isinstance(resources, dict) else {}


def pod_amounts(spec: JSONObject, kind: str) -> Amounts:
    """Return the requests or limits of a pod: the sum of its containers, or those of an init container that needs more.

    Init containers that restart run beside the others and count with them.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = add(total, container_amounts(container, kind))
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = container_amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            total, beside = add(total, own), add(beside, own)
            peak = _greater(peak, beside)
        else:
            peak = _greater(peak, add(own, beside))
    total = _greater(total, peak)
    of_pod = spec.get("resources")
    return {**total, **amounts_of(of_pod.get(kind))} if isinstance(of_pod, dict) else total


def usage_of(type: ResourceType, body: JSONObject) -> Amounts:
    """Return the usage that quotas count for an object."""
    usage: Amounts = {f"count/{resource_name(type.group, type.plural)}": _ONE}
    special = _SPECIAL.get(type.key)
    if special is not None:
        usage |= special(body)
    elif type.key in _COUNTED:
        usage[type.plural] = _ONE
    return usage


def _of_pod(body: JSONObject) -> Amounts:
    if (body.get("status") or {}).get("phase") in _ENDED:
        return {}
    spec: JSONObject = body.get("spec") or {}
    usage: Amounts = {"pods": _ONE}
    for name, amount in pod_amounts(spec, "requests").items():
        usage[f"requests.{name}"] = amount
        if name in _COMPUTE or name.startswith("hugepages-"):
            usage[name] = amount
    for name, amount in pod_amounts(spec, "limits").items():
        if name in _COMPUTE:
            usage[f"limits.{name}"] = amount
    return usage


def _of_service(body: JSONObject) -> Amounts:
    spec: JSONObject = body.get("spec") or {}
    ports: Iterable[JSONObject] = spec.get("ports") or ()
    usage: Amounts = {"services": _ONE, "services.loadbalancers": Quantity(0), "services.nodeports": Quantity(0)}
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        counted = [
            each for each in ports if spec.get("allocateLoadBalancerNodePorts") is not False or each.get("nodePort")
        ]
        usage["services.nodeports"] = Quantity(len(counted))
    if spec.get("type") == "LoadBalancer":
        usage["services.loadbalancers"] = _ONE
    return usage


def _of_claim(body: JSONObject) -> Amounts:
    spec: JSONObject = body.get("spec") or {}
    usage: Amounts = {"persistentvolumeclaims": _ONE}
    storage = container_amounts(spec, "requests").get("storage")
    storage_class = spec.get("storageClassName")
    prefix = f"{storage_class}.storageclass.storage.k8s.io/" if storage_class else ""
    if prefix:
        usage[f"{prefix}persistentvolumeclaims"] = _ONE
    if storage is not None:
        usage["requests.storage"] = storage
        if prefix:
            usage[f"{prefix}requests.storage"] = storage
    return usage


_SPECIAL: Final[Mapping[str, Callable[[JSONObject], Amounts]]] = {
    "pods": _of_pod,
    "services": _of_service,
    "persistentvolumeclaims": _of_claim,
}


def _greater(left: Amounts, right: Amounts) -> Amounts:
    return {**left, **{key: amount for key, amount in right.items() if key not in left or left[key] < amount}}
