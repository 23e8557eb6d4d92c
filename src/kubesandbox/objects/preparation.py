"""Fields that the API server itself sets or keeps when an object of a built-in kind is created or updated.

The status is not the writer's on create and on an ordinary update, everything else is not on an update of the status; a
few kinds get fields of their own. Functions return new objects and share what they do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from kubesandbox.objects.allocation import Allocator
from kubesandbox.objects.qos import qos_class
from pyverno.kube.json import JSON, JSONObject, equal

__all__ = ["Preparation", "keep_all_but_status"]

Prepare: TypeAlias = Callable[[JSONObject, JSONObject | None, Allocator], JSONObject]
"""A new object, the stored one or None, and who gives addresses, to the object that is stored."""

_OWN_STATUS: Final = frozenset({"nodes", "events", "events.events.k8s.io", "endpoints", "componentstatuses"})
"""Resources whose writers set the status on create, or which have none."""
_KEEPS_LABELS: Final = frozenset({"deployments.apps", "replicasets.apps", "replicationcontrollers"})
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class Preparation:
    """The strategies of all built-in kinds; `zero_status` gives the empty status of a resource, None without one."""

    def __init__(self, zero_status: Callable[[str], JSONObject | None], allocator: Allocator) -> None:
        self._zero_status = zero_status
        self._allocator = allocator

    def create(self, resource: str, body: JSONObject) -> JSONObject:
        """Return what is stored of a new object."""
        zero = None if resource in _OWN_STATUS else self._zero_status(resource)
        if zero is not None:
            body = {**body, "status": zero}
        return self._own(resource, body, None)

    def update(self, resource: str, body: JSONObject, old: JSONObject) -> JSONObject:
        """Return what is stored of a changed object."""
        if self._zero_status(resource) is not None:
            body = _with(body, status=old.get("status"))
        return self._own(resource, body, old)

    def _own(self, resource: str, body: JSONObject, old: JSONObject | None) -> JSONObject:
        prepare = _PREPARATIONS.get(resource)
        return prepare(body, old, self._allocator) if prepare is not None else body


def keep_all_but_status(resource: str, body: JSONObject, old: JSONObject, *, is_custom: bool) -> JSONObject:
    """Return what is stored when only the status may change.

    >>> keep_all_but_status("pods", {"metadata": {}, "spec": {"a": 2}, "status": {"b": 2}}, {"spec": {"a": 1}},
    ...     is_custom=False)
    {'spec': {'a': 1}, 'status': {'b': 2}, 'metadata': {}}
    """
    metadata = dict(body.get("metadata") or {})
    kept = old.get("metadata") or {}
    if is_custom:
        managed = metadata.get("managedFields", kept.get("managedFields"))
        metadata = _with(dict(kept), managedFields=managed, resourceVersion=metadata.get("resourceVersion"))
    elif resource in _KEEPS_LABELS:
        metadata = _with(metadata, labels=kept.get("labels"))
    return _with(old, status=body.get("status"), metadata=metadata)


def _with(body: JSONObject, **changes: JSON) -> JSONObject:
    """Return a changed copy; None removes a field."""
    merged = {**body, **changes}
    return {key: value for key, value in merged.items() if key not in changes or value is not None}


def _pod(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    if old is not None:
        return body
    spec = body.get("spec") or {}
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        body = {**body, "spec": {**spec, "terminationGracePeriodSeconds": 1}}
    return {**body, "status": {"phase": "Pending", "qosClass": qos_class(spec)}}


def _namespace(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    if old is not None:
        return _with(body, spec=old.get("spec"))
    spec = body.get("spec") or {}
    finalizers = list(spec.get("finalizers") or ())
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    return {**body, "spec": {**spec, "finalizers": finalizers}, "status": {"phase": "Active"}}


def _pending(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    return body if old is not None else {**body, "status": {"phase": "Pending"}}


def _claim(body: JSONObject, old: JSONObject | None, allocator: Allocator) -> JSONObject:
    """A source is written in two fields; each is filled in from the other."""
    spec = body.get("spec") or {}
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        body = {**body, "spec": {**spec, "dataSourceRef": source}}
    elif reference and not source and not reference.get("namespace"):
        body = {**body, "spec": {**spec, "dataSource": reference}}
    return _pending(body, old, allocator)


def _job(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    """A job selects its pods by its own uid, unless it has `manualSelector`."""
    spec = body.get("spec") or {}
    if old is not None or spec.get("manualSelector"):
        return body
    metadata = body.get("metadata") or {}
    uid, name = str(metadata.get("uid", "")), str(metadata.get("name", ""))
    template = spec.get("template") or {}
    inner = template.get("metadata") or {}
    labels = {
        **(inner.get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), "batch.kubernetes.io/controller-uid": uid}
    template = {**template, "metadata": {**inner, "labels": labels}}
    if not metadata.get("labels"):
        metadata = {**metadata, "labels": labels}
    return {**body, "metadata": metadata, "spec": {**spec, "selector": selector, "template": template}}


def _daemon_set(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    """The annotation counts changes of the template."""
    metadata = body.get("metadata") or {}
    count = 1
    if old is not None:
        kept = ((old.get("metadata") or {}).get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
        changed = not equal((body.get("spec") or {}).get("template"), (old.get("spec") or {}).get("template"))
        count = int(kept) + changed if str(kept).isdecimal() else 1
    annotations = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(count)}
    return {**body, "metadata": {**metadata, "annotations": annotations}}


def _service(body: JSONObject, old: JSONObject | None, allocator: Allocator) -> JSONObject:
    spec = dict(body.get("spec") or {})
    before = (old or {}).get("spec") or {}
    metadata = body.get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    if spec.get("type") == "ExternalName":
        if before.get("type", "ExternalName") != "ExternalName":
            kept = {key: None for key in _ADDRESS_FIELDS if spec.get(key) == before.get(key)}
            kept["internalTrafficPolicy"] = None
            kept |= dict.fromkeys(("ipFamilies", "ipFamilyPolicy")) if not spec.get("clusterIP") else {}
            spec = _with(spec, **kept)
        return {**body, "spec": spec}
    _set_addresses(spec, before, name, allocator)
    _set_node_ports(spec, before, name, allocator)
    return {**body, "spec": spec}


def _set_addresses(spec: JSONObject, before: JSONObject, name: str, allocator: Allocator) -> None:
    kept = before.get("clusterIP")
    if not spec.get("clusterIP"):
        written = (spec.get("clusterIPs") or [""])[0] if not before else ""
        spec["clusterIP"] = written or kept or allocator.address(name)
    if not spec.get("clusterIPs") or spec["clusterIPs"][0] != spec["clusterIP"]:
        keeps_list = bool(before) and before.get("clusterIP") == spec["clusterIP"]
        spec["clusterIPs"] = before.get("clusterIPs") if keeps_list else [spec["clusterIP"]]
    is_open = spec["clusterIP"] == "None" and not spec.get("selector") and not before
    if is_open and not spec.get("ipFamilies") and not spec.get("ipFamilyPolicy"):
        # a headless service without selector shows nothing of its addresses, so it takes both families
        spec["ipFamilies"], spec["ipFamilyPolicy"] = ["IPv4", "IPv6"], "RequireDualStack"
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = before.get("ipFamilies") or ["IPv6" if ":" in spec["clusterIP"] else "IPv4"]
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or "SingleStack"


def _set_node_ports(spec: JSONObject, before: JSONObject, name: str, allocator: Allocator) -> None:
    ports: list[JSONObject] = spec.get("ports") or []
    wants = spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False
    )
    if not wants:
        if before.get("type") in ("NodePort", "LoadBalancer") and spec.get("type") == "ClusterIP":
            spec["ports"] = [_with(port, nodePort=None) for port in ports]
        return
    kept = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
    own = {port["nodePort"] for port in ports if port.get("nodePort")}
    given: list[JSONObject] = []
    for port in ports:
        node_port = port.get("nodePort")
        if not node_port:
            node_port = kept.get((port.get("protocol"), port.get("port")))
            if not node_port or node_port in own:
                node_port = allocator.node_port(f"{name}:{port.get('port')}/{port.get('protocol')}", own)
            own.add(node_port)
        given.append({**port, "nodePort": node_port})
    spec["ports"] = given


def _definition(body: JSONObject, old: JSONObject | None, _allocator: Allocator) -> JSONObject:
    if old is not None:
        return body
    stored = [
        version.get("name") for version in (body.get("spec") or {}).get("versions") or () if version.get("storage")
    ]
    status: JSONObject = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}
    return {**body, "status": status}


_PREPARATIONS: Final[Mapping[str, Prepare]] = {
    "pods": _pod,
    "namespaces": _namespace,
    "persistentvolumes": _pending,
    "persistentvolumeclaims": _claim,
    "jobs.batch": _job,
    "daemonsets.apps": _daemon_set,
    "services": _service,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
