"""Checks whether a pod may run on a node, and formats the scheduler's reasons.

Pure functions. Node names, cordons, taints and node selectors count. Of node affinity only the form of DaemonSets
counts, which pins a pod to one node; free resources of nodes do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kubesandbox.controllers.objects import at, labels_of, name_of
from pyverno.kube.json import JSONObject

__all__ = ["no_room_message", "pinned_node", "tolerates", "unfit_reason"]

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def unfit_reason(pod: JSONObject, node: JSONObject) -> str:
    """Return the reason why a pod cannot run on a node, empty if it can.

    >>> unfit_reason({"spec": {"nodeSelector": {"disk": "ssd"}}}, {"metadata": {"name": "n"}})
    "node(s) didn't match Pod's node affinity/selector"
    """
    spec: JSONObject = pod.get("spec") or {}
    tolerations: list[JSONObject] = spec.get("tolerations") or []
    if spec.get("nodeName") not in (None, "", name_of(node)):
        return "node(s) didn't match the requested node name"
    if at(node, "spec", "unschedulable", default=False) and not tolerates(tolerations, UNSCHEDULABLE):
        return "node(s) were unschedulable"
    for taint in at(node, "spec", "taints", default=[]):
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerates(tolerations, taint):
            return "node(s) had untolerated taint(s)"
    if pinned_node(pod) not in ("", name_of(node)):
        return "node(s) didn't match Pod's node affinity/selector"
    selector: Mapping[str, str] = spec.get("nodeSelector") or {}
    if not selector.items() <= labels_of(node).items():
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def pinned_node(pod: JSONObject) -> str:
    """Return the node that the affinity of a pod names, empty when it names none."""
    path = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in at(pod, "spec", "affinity", *path, default=[]):
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("operator") == "In" and field.get("values"):
                return str(field["values"][0])
    return ""


def no_room_message(reasons: Sequence[str]) -> str:
    """Return the scheduler's text when no node fits, given the reason of each node.

    >>> no_room_message(["node(s) were unschedulable"])
    '0/1 nodes are available: 1 node(s) were unschedulable. preemption: 0/1 nodes are available: 1 Preemption is not \
helpful for scheduling.'
    """
    if not reasons:
        return "no nodes available to schedule pods"
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
    head = f"0/{len(reasons)} nodes are available: "
    return f"{head}{listed}. preemption: {head}{len(reasons)} Preemption is not helpful for scheduling."


def tolerates(tolerations: Iterable[JSONObject], taint: JSONObject) -> bool:
    """Return whether one of the tolerations is for a taint.

    >>> tolerates([{"operator": "Exists"}], {"key": "a", "effect": "NoSchedule"})
    True
    """
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JSONObject, taint: JSONObject) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") not in (None, "", taint.get("key")):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")
