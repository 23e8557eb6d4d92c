"""Priority: fills in the number of a pod's PriorityClass, and permits one default class."""

from __future__ import annotations

from kubesandbox.admission.plugins.pods import is_pod_write, pod_spec, with_spec
from kubesandbox.admission.policies.requests import refused
from kubesandbox.attributes import Attributes
from kubesandbox.storage.store import Key
from kubesandbox.view import ClusterView
from pyverno.engine.request import Operation
from pyverno.kube.json import JSONObject

__all__ = ["admit_priority", "check_priority_class"]

_CLASSES = "priorityclasses.scheduling.k8s.io"
_KEPT = ("priority", "preemptionPolicy")


def admit_priority(attributes: Attributes, cluster: ClusterView) -> Attributes:
    """Return the request with priority and preemption policy of the pod's class; raises 403."""
    if is_pod_write(attributes, Operation.UPDATE):
        return _restore_fields(attributes)
    if not is_pod_write(attributes, Operation.CREATE):
        return attributes
    spec = pod_spec(attributes)
    name = str(spec.get("priorityClassName") or "")
    chosen = _find_class(name, cluster) if name else _default(cluster)
    if name and chosen is None:
        raise refused(attributes, f"no PriorityClass with name {name} was found")
    value = int(chosen.get("value", 0)) if chosen else 0
    policy = chosen.get("preemptionPolicy") if chosen else "PreemptLowerPriority"
    given = spec.get("priority")
    by = "priority admission controller computed"
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec"
        raise refused(attributes, f"{why}; {by} {value} from the given PriorityClass name")
    changed: JSONObject = {**spec, "priority": value}
    if chosen and not name:
        changed["priorityClassName"] = chosen["metadata"]["name"]
    if policy is not None:
        written = spec.get("preemptionPolicy")
        if written is not None and written != policy:
            why = f"the string value of PreemptionPolicy ({written}) must not be provided in pod spec"
            raise refused(attributes, f"{why}; {by} {policy} from the given PriorityClass name")
        changed["preemptionPolicy"] = policy
    return with_spec(attributes, changed)


def check_priority_class(attributes: Attributes, cluster: ClusterView) -> None:
    """Raise 403 for a second default class."""
    body = attributes.object
    is_write = attributes.operation in (Operation.CREATE, Operation.UPDATE) and not attributes.subresource
    if attributes.type.key != _CLASSES or not is_write or body is None or body.get("globalDefault") is not True:
        return
    known = _default(cluster)
    if known is not None:
        name = known["metadata"]["name"]
        if attributes.operation is Operation.CREATE or name != attributes.name:
            why = f"PriorityClass {name} is already marked as default. Only one default can exist"
            raise refused(attributes, why)


def _restore_fields(attributes: Attributes) -> Attributes:
    """Restore the fields that an update of the pod omits; validation refuses any other change."""
    spec, old = pod_spec(attributes), (attributes.old or {}).get("spec") or {}
    missing = {key: old[key] for key in _KEPT if old.get(key) is not None and spec.get(key) is None}
    return with_spec(attributes, {**spec, **missing}) if missing else attributes


def _find_class(name: str, cluster: ClusterView) -> JSONObject | None:
    found = cluster.get(Key(_CLASSES, "", name))
    return None if found is None else found.body


def _default(cluster: ClusterView) -> JSONObject | None:
    defaults = [stored.body for stored in cluster.all(_CLASSES) if stored.body.get("globalDefault") is True]
    return min(defaults, key=lambda body: int(body.get("value", 0)), default=None)
