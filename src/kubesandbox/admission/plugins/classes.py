"""Default classes of objects (IngressClass, StorageClass), and the RuntimeClass of pods.

Of several defaults the newest counts.
"""

from __future__ import annotations

from kubesandbox.admission.plugins.pods import is_pod_write, pod_spec, with_spec
from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.parsing.requests import go_quote
from kubesandbox.storage.store import Key
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject, equal

__all__ = ["admit_classes", "admit_runtime_class"]

_INGRESS_ANNOTATION = "kubernetes.io/ingress.class"
_DEFAULTED = {
    "ingresses.networking.k8s.io": (
        "ingressClassName",
        "ingressclasses.networking.k8s.io",
        ("ingressclass.kubernetes.io/is-default-class",),
    ),
    "persistentvolumeclaims": (
        "storageClassName",
        "storageclasses.storage.k8s.io",
        ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"),
    ),
}
"""Storage keys → the field that names the class, the storage key of classes, the annotations of a default one."""


def admit_classes(attributes: Attributes, cluster: ClusterView) -> Attributes:
    """Return the request with the default class, unless the object names one."""
    row = _DEFAULTED.get(attributes.type.key)
    if row is None or attributes.subresource or attributes.operation is not Operation.CREATE:
        return attributes
    field, resource, marks = row
    spec, metadata = pod_spec(attributes), (attributes.object or {}).get("metadata") or {}
    if spec.get(field) is not None or _INGRESS_ANNOTATION in (metadata.get("annotations") or {}):
        return attributes
    name = _default(resource, marks, cluster)
    return with_spec(attributes, {**spec, field: name}) if name else attributes


def admit_runtime_class(attributes: Attributes, cluster: ClusterView) -> Attributes:
    """Return the request with the overhead, node selector and tolerations of the pod's RuntimeClass; raises 403."""
    spec = pod_spec(attributes)
    if not is_pod_write(attributes, Operation.CREATE) or not spec.get("runtimeClassName"):
        return attributes
    name = str(spec["runtimeClassName"])
    found = cluster.get(Key("runtimeclasses.node.k8s.io", "", name))
    if found is None:
        raise refused(attributes, f"pod rejected: RuntimeClass {go_quote(name)} not found")
    changed: JSONObject = dict(spec)
    overhead = (found.body.get("overhead") or {}).get("podFixed")
    if overhead:
        if spec.get("overhead") and not equal(spec["overhead"], overhead):
            raise refused(attributes, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        changed["overhead"] = overhead
    scheduling: JSONObject = found.body.get("scheduling") or {}
    selector, own = scheduling.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    for key, value in selector.items():
        if own.get(key, value) != value:
            where = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own[key]}"
            raise refused(attributes, f"conflict: {where}")
    if selector:
        changed["nodeSelector"] = {**own, **selector}
    present = spec.get("tolerations") or []
    added = [each for each in scheduling.get("tolerations") or () if each not in present]
    if added:
        changed["tolerations"] = [*present, *added]
    return with_spec(attributes, changed)


def _default(resource: str, marks: tuple[str, ...], cluster: ClusterView) -> str:
    """Return the name of the newest default class, empty without one."""
    found = []
    for stored in cluster.all(resource):
        metadata = stored.body["metadata"]
        if any((metadata.get("annotations") or {}).get(mark) == "true" for mark in marks):
            found.append((str(metadata.get("creationTimestamp") or ""), stored.key.name))
    newest = max((made for made, _ in found), default="")
    return min((name for made, name in found if made == newest), default="")
