"""ResourceQuota: rejects requests that would exceed a quota of their namespace.

Usage is counted from the stored objects at each request, so that it never lags behind. A controller writes the status
of quotas. Scopes are not implemented: a quota with scopes counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubesandbox.admission.plugins.usage import Amounts, add, amounts_of, container_amounts, usage_of
from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.types.resources import ResourceType
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject
from pyverno.kube.quantity import Quantity

__all__ = ["check_quota", "has_scopes", "used_amounts"]

_REQUIRED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""Resources that every container must state as soon as a quota counts them."""

_ZERO: Final = Quantity(0)


def check_quota(attributes: Attributes, cluster: ClusterView) -> None:
    """Raise 403 for a request that would exceed a quota of its namespace."""
    body = attributes.object
    if body is None or not attributes.namespace or not _is_counted(attributes):
        return
    quotas = cluster.all("resourcequotas", attributes.namespace)
    if not quotas:
        return
    usage = usage_of(attributes.type, body)
    before = usage_of(attributes.type, attributes.old) if attributes.old is not None else {}
    delta = {name: _difference(amount, before.get(name, _ZERO)) for name, amount in usage.items()}
    for stored in quotas:
        name, quota = stored.key.name, stored.body
        hard = amounts_of((quota.get("spec") or {}).get("hard"))
        counted = {
            key: hard[key] for key in hard if key in usage or (attributes.type.key == "pods" and key in _REQUIRED)
        }
        if not counted or has_scopes(quota):
            continue
        if attributes.type.key == "pods":
            _check_stated(attributes, name, counted)
        _check_room(attributes, name, counted, delta, cluster)


def has_scopes(quota: JSONObject) -> bool:
    """Return whether a quota counts only some pods, which is not implemented."""
    spec: JSONObject = quota.get("spec") or {}
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def used_amounts(namespace: str, cluster: ClusterView, names: Iterable[str]) -> Amounts:
    """Return the usage of the named resources by the objects of a namespace."""
    wanted = tuple(names)
    total: Amounts = dict.fromkeys(wanted, _ZERO)
    for type in _types_of(wanted, cluster):
        for stored in cluster.all(type.key, namespace):
            usage = usage_of(type, stored.body)
            total = add(total, {name: usage[name] for name in wanted if name in usage})
    return total


def _is_counted(attributes: Attributes) -> bool:
    if attributes.subresource:
        return False
    if attributes.operation is Operation.CREATE:
        return True
    # Kubernetes: the usage of a pod is fixed at its creation
    return attributes.operation is Operation.UPDATE and attributes.type.key in ("services", "persistentvolumeclaims")


def _check_stated(attributes: Attributes, quota: str, counted: Mapping[str, Quantity]) -> None:
    spec: JSONObject = (attributes.object or {}).get("spec") or {}
    if spec.get("resources"):
        return
    missing: dict[str, set[str]] = {}
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for name in sorted(_REQUIRED & counted.keys()):
        kind, resource = _stated_as(name)
        for container in containers:
            if resource not in container_amounts(container, kind):
                missing.setdefault(name, set()).add(str(container.get("name") or ""))
    if missing:
        listed = "; ".join(f"{name} for: {','.join(sorted(names))}" for name, names in missing.items())
        raise refused(attributes, f"failed quota: {quota}: must specify {listed}")


def _stated_as(name: str) -> tuple[str, str]:
    kind, dot, resource = name.partition(".")
    return (kind, resource) if dot else ("requests", name)


def _check_room(
    attributes: Attributes,
    name: str,
    counted: Mapping[str, Quantity],
    delta: Mapping[str, Quantity],
    cluster: ClusterView,
) -> None:
    asked = {key: delta[key] for key in counted if key in delta and delta[key].sign() > 0}
    if not asked:
        return
    used = used_amounts(attributes.namespace, cluster, asked)
    over = sorted(key for key in asked if counted[key] < used[key].add(asked[key]))
    if over:
        parts = (("requested", asked), ("used", used), ("limited", counted))
        listed = ", ".join(f"{word}: {','.join(f'{key}={amounts[key]}' for key in over)}" for word, amounts in parts)
        raise refused(attributes, f"exceeded quota: {name}, {listed}")


def _difference(now: Quantity, before: Quantity) -> Quantity:
    left = now.subtract(before)
    return left if left.sign() > 0 else _ZERO


def _types_of(names: Iterable[str], cluster: ClusterView) -> Iterator[ResourceType]:
    """Yield the types whose objects count for some amounts, each storage once."""
    wanted = set(names)
    seen: set[str] = set()
    for type in cluster.table:
        if type.namespaced and type.key not in seen and _may_count(type, wanted):
            seen.add(type.key)
            yield type


def _may_count(type: ResourceType, names: set[str]) -> bool:
    if f"count/{type.key}" in names or type.key in names:
        return True
    match type.key:
        case "pods":
            others = ("services", "persistentvolumeclaims", "count/")
            return any(not name.startswith(others) and name != "requests.storage" for name in names)
        case "services":
            return any(name.startswith("services.") for name in names)
        case "persistentvolumeclaims":
            return any(name == "requests.storage" or "storageclass.storage.k8s.io/" in name for name in names)
    return False
