"""The pods of a StatefulSet: their names and claims, and which of them to make or delete next.

Functions of what is seen; upstream: `pkg/controller/statefulset`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from kubesandbox.controllers.objects import (
    at,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    number_at,
    owner_reference,
)
from kubesandbox.controllers.pods import is_available, is_terminal, pod_from
from kubesandbox.controllers.workloads.revision import template_of
from kubesandbox.controllers.workloads.rollout import replicas_of
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = ["Step", "claims_of", "needs_current", "next_step", "ordinal_of", "pod_of", "revision_label"]

REVISION_LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Step:
    """The next step: ordinals of pods to make, and pods to delete."""

    create: tuple[int, ...] = ()
    delete: tuple[JSONObject, ...] = ()


def ordinal_of(body: JSONObject, pod: JSONObject) -> int:
    """Return the number in the name of a pod, -1 when it has none.

    >>> ordinal_of({"metadata": {"name": "web"}}, {"metadata": {"name": "web-12"}})
    12
    """
    stem, _, number = name_of(pod).rpartition("-")
    return int(number) if stem == name_of(body) and number.isdigit() else -1


def start_of(body: JSONObject) -> int:
    """Return the first ordinal."""
    return number_at(body, "spec", "ordinals", "start")


def revision_label(pod: JSONObject) -> str:
    """Return the name of the revision that a pod was made from."""
    return labels_of(pod).get(REVISION_LABEL, "")


def claim_name(claim: JSONObject, body: JSONObject, ordinal: int) -> str:
    """Return the name of the claim of one pod."""
    return f"{name_of(claim)}-{name_of(body)}-{ordinal}"


def claims_of(body: JSONObject, ordinal: int) -> list[JSONObject]:
    """Return the claims that one pod needs."""
    labels = at(body, "spec", "selector", "matchLabels", default={})
    keeps = at(body, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted", default="Retain") == "Retain"
    owners = {} if keeps else {"ownerReferences": [owner_reference(body, is_controller=False)]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{key: value for key, value in claim.get("metadata", {}).items() if value},
                "name": claim_name(claim, body, ordinal),
                "namespace": namespace_of(body),
                "labels": {**labels_of(claim), **labels},
                **owners,
            },
            "spec": claim.get("spec", {}),
        }
        for claim in at(body, "spec", "volumeClaimTemplates", default=[])
    ]


def pod_of(body: JSONObject, ordinal: int, revision: JSONObject) -> JSONObject:
    """Return the pod of one ordinal, made from the template of a revision."""
    name = f"{name_of(body)}-{ordinal}"
    pod = pod_from(template_of(revision), body, name=name)
    labels = {
        **labels_of(pod),
        REVISION_LABEL: name_of(revision),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    claims = at(body, "spec", "volumeClaimTemplates", default=[])
    claimed = {name_of(claim) for claim in claims}
    volumes = [item for item in at(pod, "spec", "volumes", default=[]) if item.get("name") not in claimed]
    volumes += [
        {"name": name_of(claim), "persistentVolumeClaim": {"claimName": claim_name(claim, body, ordinal)}}
        for claim in claims
    ]
    spec = {**pod["spec"], "hostname": name}
    service = at(body, "spec", "serviceName")
    if service:
        spec["subdomain"] = service
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}


def needs_current(body: JSONObject, ordinal: int) -> bool:
    """Return whether a pod that is made now is still one of the current revision, not of the newest."""
    strategy = at(body, "spec", "updateStrategy", default={})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return False
    rolling = strategy.get("rollingUpdate")
    limit = number_at(body, "status", "currentReplicas") if rolling is None else number_at(rolling, "partition")
    return ordinal < start_of(body) + limit


def next_step(body: JSONObject, pods: Sequence[JSONObject], newest: str, now: datetime) -> Step:
    """Return what to do now; `newest` is the name of the newest revision.

    Ordered sets make and delete one pod at a time, each after all before it are available.
    """
    least = number_at(body, "spec", "minReadySeconds")

    def is_well(pod: JSONObject | None) -> bool:
        return pod is not None and not is_deleting(pod) and is_available(pod, least, now)

    first, wanted = start_of(body), replicas_of(body)
    by_ordinal = {ordinal_of(body, pod): pod for pod in pods}
    is_ordered = at(body, "spec", "podManagementPolicy", default="OrderedReady") == "OrderedReady"
    condemned = [by_ordinal[n] for n in sorted(by_ordinal, reverse=True) if not first <= n < first + wanted]
    create: list[int] = []
    delete: list[JSONObject] = []
    for ordinal in range(first, first + wanted):
        pod = by_ordinal.get(ordinal)
        if pod is None:
            create.append(ordinal)
        elif is_terminal(pod) and not is_deleting(pod):
            delete.append(pod)
        if is_ordered and (create or delete):
            return Step(tuple(create), tuple(delete))
        if is_ordered and not is_well(pod):
            return Step()
    for pod in condemned:
        if is_ordered and (is_deleting(pod) or not all(map(is_well, _others(by_ordinal, pod)))):
            return Step(tuple(create), tuple(delete))
        if not is_deleting(pod):
            delete.append(pod)
        if is_ordered:
            return Step(tuple(create), tuple(delete))
    if create or delete:
        return Step(tuple(create), tuple(delete))
    return Step(delete=_outdated(body, by_ordinal, newest, is_well))


def _outdated(
    body: JSONObject, by_ordinal: dict[int, JSONObject], newest: str, is_well: Callable[[JSONObject], bool]
) -> tuple[JSONObject, ...]:
    """Return the pod to replace in a rolling update: the last one that is not of the newest revision."""
    strategy = at(body, "spec", "updateStrategy", default={})
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return ()
    first = start_of(body) + number_at(strategy, "rollingUpdate", "partition")
    for ordinal in sorted((n for n in by_ordinal if n >= first), reverse=True):
        pod = by_ordinal[ordinal]
        if revision_label(pod) != newest and not is_deleting(pod):
            return (pod,)
        if not is_well(pod):
            return ()
    return ()


def _others(by_ordinal: dict[int, JSONObject], pod: JSONObject) -> list[JSONObject]:
    return [item for item in by_ordinal.values() if item is not pod and not is_deleting(item)]
