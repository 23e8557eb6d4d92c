"""Properties of pods for controllers: active, ready, available, and their order of deletion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since
from kubesandbox.controllers.conditions import find_condition, has_condition
from kubesandbox.controllers.objects import annotations_of, at, is_deleting, name_of, number_at, owner_reference
from pyverno.kube.json import JSONObject

__all__ = [
    "available_in",
    "conditions_of",
    "deletion_order",
    "is_active",
    "is_available",
    "is_ready",
    "is_terminal",
    "phase_of",
    "pod_from",
]

_ENDED = frozenset({"Succeeded", "Failed"})
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = "controller.kubernetes.io/pod-deletion-cost"


def phase_of(pod: JSONObject) -> str:
    """Return the phase."""
    return str(at(pod, "status", "phase", default=""))


def conditions_of(body: JSONObject) -> list[JSONObject]:
    """Return the conditions of any object."""
    found: list[JSONObject] = at(body, "status", "conditions", default=[])
    return found


def is_terminal(pod: JSONObject) -> bool:
    """Return whether the pod has run to its end."""
    status: JSONObject = pod.get("status") or {}
    return status.get("phase") in _ENDED


def is_active(pod: JSONObject) -> bool:
    """Return whether the pod counts as a replica."""
    return not is_terminal(pod) and not is_deleting(pod)


def is_ready(pod: JSONObject) -> bool:
    """Return whether the pod is ready."""
    return has_condition(conditions_of(pod), "Ready")


def is_available(pod: JSONObject, min_ready: int, now: datetime) -> bool:
    """Return whether the pod has been ready for so many seconds."""
    return is_ready(pod) and available_in(pod, min_ready, now) <= 0


def available_in(pod: JSONObject, min_ready: int, now: datetime) -> float:
    """Return the seconds until a ready pod is available, 0 or less if it is."""
    ready = find_condition(conditions_of(pod), "Ready")
    if not min_ready or ready is None:
        return 0.0
    return min_ready - seconds_since(str(ready.get("lastTransitionTime", "")), now)


def pod_from(template: JSONObject, owner: JSONObject, *, generate_name: str = "", name: str = "") -> JSONObject:
    """Return the pod that a controller makes from a template, with the owner as its controller."""
    metadata: JSONObject = {"name": name} if name else {"generateName": generate_name}
    metadata["namespace"] = owner["metadata"]["namespace"]
    for field in ("labels", "annotations", "finalizers"):
        found = at(template, "metadata", field)
        if found:
            metadata[field] = found
    metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec", {})}


def deletion_order(pods: Iterable[JSONObject], now: datetime) -> list[JSONObject]:
    """Return pods in the order in which a ReplicaSet deletes them.

    Unscheduled ones first, then those that do not run, are not ready, cost less, share their node with more of the
    others, became ready later, restarted more often, are younger.
    """
    # Kubernetes: pkg/controller/controller_utils.go ActivePodsWithRanks
    listed = list(pods)
    on_node = Counter(str(at(pod, "spec", "nodeName", default="")) for pod in listed)

    def rank(pod: JSONObject) -> tuple[float | str, ...]:
        node = str(at(pod, "spec", "nodeName", default=""))
        ready = find_condition(conditions_of(pod), "Ready") or {}
        statuses: Sequence[JSONObject] = at(pod, "status", "containerStatuses", default=[])
        return (
            bool(node),
            _PHASES.get(phase_of(pod), 3),
            is_ready(pod),
            _cost(pod),
            -on_node[node],
            seconds_since(str(ready.get("lastTransitionTime", "")), now),
            -max((number_at(status, "restartCount") for status in statuses), default=0),
            seconds_since(str(at(pod, "metadata", "creationTimestamp", default="")), now),
            name_of(pod),
        )

    return sorted(listed, key=rank)


def _cost(pod: JSONObject) -> int:
    try:
        return int(annotations_of(pod).get(_COST, "0"))
    except ValueError:
        return 0
