"""The pods of a DaemonSet: their nodes, and the pods to create or delete next.

Pure functions; upstream: `pkg/controller/daemon`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.nodes.fitting import pinned_node, unfit_reason
from kubesandbox.controllers.objects import annotations_of, at, is_deleting, labels_of, name_of, number_at
from kubesandbox.controllers.pods import is_available, is_ready, is_terminal, pod_from
from kubesandbox.controllers.workloads.rollout import scaled
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["HASH", "Plan", "belongs_on", "daemon_pod", "daemon_status", "node_of", "plan"]

HASH = "controller-revision-hash"
GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes that need a pod, and the pods to delete."""

    create: tuple[str, ...] = ()
    delete: tuple[JSONObject, ...] = ()


def daemon_pod(body: JSONObject, node: str, digest: str) -> JSONObject:
    """Return the pod for one node; it is bound to the node by its affinity, as the scheduler expects."""
    template: JSONObject = at(body, "spec", "template", default={})
    pod = pod_from(template, body, generate_name=f"{name_of(body)}-")
    spec = dict(pod["spec"])
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required: JSONObject = {"nodeSelectorTerms": [term]}
    affinity: JSONObject = spec.get("affinity") or {}
    old = at(
        affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", default=[]
    )
    if old:
        required = {"nodeSelectorTerms": [{**item, **term} for item in old]}
    by_node = {**affinity.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution": required}
    spec["affinity"] = {**affinity, "nodeAffinity": by_node}
    extra = [*_TOLERATED]
    if spec.get("hostNetwork"):
        extra.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    known = {(item.get("key"), item.get("effect")) for item in spec.get("tolerations") or ()}
    spec["tolerations"] = [
        *(spec.get("tolerations") or ()),
        *({"key": key, "operator": "Exists", "effect": effect} for key, effect in extra if (key, effect) not in known),
    ]
    labels = {**labels_of(pod), HASH: digest, "pod-template-generation": annotations_of(body).get(GENERATION, "1")}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}


def belongs_on(body: JSONObject, node: JSONObject) -> bool:
    """Return whether a node is one that the set wants a pod on."""
    return not unfit_reason(daemon_pod(body, name_of(node), ""), node)


def node_of(pod: JSONObject) -> str:
    """Return the node of a pod: its own, or the one in its affinity."""
    return str(at(pod, "spec", "nodeName") or pinned_node(pod))


def plan(body: JSONObject, nodes: Sequence[JSONObject], pods: Sequence[JSONObject], digest: str, now: datetime) -> Plan:
    """Return the next actions; `digest` is the hash of the newest revision."""
    wanted = [name_of(node) for node in nodes if belongs_on(body, node)]
    by_node: dict[str, list[JSONObject]] = {}
    for pod in pods:
        by_node.setdefault(node_of(pod), []).append(pod)
    create: list[str] = []
    delete = [pod for node, found in by_node.items() if node not in wanted for pod in found]
    for node in wanted:
        found = by_node.get(node, [])
        delete += [pod for pod in found if is_terminal(pod)]
        alive = sorted((pod for pod in found if not is_terminal(pod)), key=lambda pod: (is_deleting(pod), name_of(pod)))
        delete += alive[1:]
        if not found:
            create.append(node)
    if not create and not delete:
        delete = _outdated(body, wanted, by_node, digest, now)
    return Plan(tuple(create), tuple(pod for pod in delete if not is_deleting(pod)))


def _outdated(
    body: JSONObject, wanted: Sequence[str], by_node: Mapping[str, list[JSONObject]], digest: str, now: datetime
) -> list[JSONObject]:
    """Return the pods of older revisions that a rolling update may take away now."""
    strategy: JSONObject = at(body, "spec", "updateStrategy", default={})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return []
    most = max(scaled(at(strategy, "rollingUpdate", "maxUnavailable", default=1), len(wanted), up=True), 1)
    least = number_at(body, "spec", "minReadySeconds")
    pods = [by_node[node][0] for node in wanted if by_node.get(node)]
    missing = sum(is_deleting(pod) or not is_available(pod, least, now) for pod in pods) + len(wanted) - len(pods)
    old = [pod for pod in pods if labels_of(pod).get(HASH) != digest and not is_deleting(pod)]
    broken = [pod for pod in old if not is_available(pod, least, now)]
    healthy = [pod for pod in old if is_available(pod, least, now)]
    return [*broken, *healthy[: max(most - missing, 0)]]


def daemon_status(
    body: JSONObject, nodes: Sequence[JSONObject], pods: Sequence[JSONObject], digest: str, now: datetime
) -> JSONObject:
    """Return the status of a set with these pods."""
    wanted = {name_of(node) for node in nodes if belongs_on(body, node)}
    least = number_at(body, "spec", "minReadySeconds")
    on_nodes: dict[str, JSONObject] = {}
    for pod in sorted(pods, key=lambda pod: (not is_ready(pod), name_of(pod))):
        on_nodes.setdefault(node_of(pod), pod)
    placed = [pod for node, pod in on_nodes.items() if node in wanted]
    available = sum(is_available(pod, least, now) and not is_deleting(pod) for pod in placed)
    counts = {
        "observedGeneration": number_at(body, "metadata", "generation"),
        "updatedNumberScheduled": sum(labels_of(pod).get(HASH) == digest for pod in placed),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "collisionCount": number_at(body, "status", "collisionCount"),
    }
    return {
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": len(on_nodes.keys() - wanted),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(map(is_ready, placed)),
        **{field: count for field, count in counts.items() if count},
    }
