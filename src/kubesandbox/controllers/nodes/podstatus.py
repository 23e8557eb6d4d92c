"""The status of running pods, with the texts of a real kubelet; `podends` has their end.

Pure functions of the pod. No image is pulled, and no command is started.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from kubesandbox.controllers.clock import stamp
from kubesandbox.controllers.conditions import condition, find_condition, has_condition, set_condition
from kubesandbox.controllers.objects import at, number_at, uid_of
from kubesandbox.controllers.pods import conditions_of
from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref.reference import parse_reference
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import replace

__all__ = [
    "CONTAINERS",
    "container_id",
    "image_name",
    "is_changed",
    "pod_condition",
    "ready_conditions",
    "running_status",
    "terminated",
]

CONTAINERS = "containerStatuses"


def running_status(pod: JSONObject, *, address: str, host: str, now: datetime) -> JSONObject:
    """Return the status of a pod whose containers all run and are ready; earlier fields stay."""
    status: JSONObject = dict(pod.get("status") or {})
    address = host if at(pod, "spec", "hostNetwork", default=False) else address
    status |= {"phase": "Running", "hostIP": host, "hostIPs": [{"ip": host}]}
    status |= {"podIP": address, "podIPs": [{"ip": address}]}
    status.setdefault("startTime", stamp(now))
    status["conditions"] = ready_conditions(pod, now)
    old = {item["name"]: item for group in _STATUS_FIELDS.values() for item in status.get(group, ())}
    for field, into in _STATUS_FIELDS.items():
        containers: Sequence[JSONObject] = at(pod, "spec", field, default=[])
        if containers:
            status[into] = [_container(pod, item, field, old.get(item["name"]), now) for item in containers]
    return status


def is_changed(pod: JSONObject) -> bool:
    """Return whether a running pod has containers or images that its status does not show."""
    for field, into in _STATUS_FIELDS.items():
        said = {item["name"]: item.get("image") for item in at(pod, "status", into, default=[])}
        for container in at(pod, "spec", field, default=[]):
            if said.get(container["name"]) != image_name(container.get("image", "")):
                return True
    return False


def image_name(image: str) -> str:
    """Return the image as a container runtime names it.

    >>> image_name("nginx"), image_name("ghcr.io/a/b:1")
    ('docker.io/library/nginx:latest', 'ghcr.io/a/b:1')
    """
    try:
        found = parse_reference(image)
    except ValueSyntaxError:
        return image
    if found.registry == "docker.io" and "/" not in found.path:
        found = replace(found, path=f"library/{found.path}")
    return str(found)


_STATUS_FIELDS = {
    "initContainers": "initContainerStatuses",
    "containers": CONTAINERS,
    "ephemeralContainers": "ephemeralContainerStatuses",
}


def ready_conditions(pod: JSONObject, now: datetime) -> list[JSONObject]:
    """Return the conditions of a pod whose containers all run, with its readiness gates considered."""
    known = conditions_of(pod)
    missing = [
        gate["conditionType"]
        for gate in at(pod, "spec", "readinessGates", default=[])
        if not has_condition(known, gate["conditionType"])
    ]
    ready = pod_condition("Ready", "True", now)
    if missing:
        texts = [
            f'corresponding condition of pod readiness gate "{kind}" '
            + ("does not exist." if find_condition(known, kind) is None else 'is not "True".')
            for kind in missing
        ]
        message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        ready |= {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}
    conditions = list(known)
    for new in (
        pod_condition("PodReadyToStartContainers", "True", now),
        pod_condition("Initialized", "True", now),
        ready,
        pod_condition("ContainersReady", "True", now),
        pod_condition("PodScheduled", "True", now),
    ):
        conditions = set_condition(conditions, new)
    return conditions


def pod_condition(kind: str, status: str, now: datetime, reason: str = "") -> JSONObject:
    """Return a condition as kubelets write them."""
    found = {**condition(kind, status, now), "lastProbeTime": None}
    return {**found, "reason": reason} if reason else found


def _container(pod: JSONObject, container: JSONObject, field: str, old: JSONObject | None, now: datetime) -> JSONObject:
    image = image_name(container.get("image", ""))
    if old is not None and old.get("image") == image and old.get("containerID"):
        return old
    restarts = 0 if old is None or not old.get("containerID") else number_at(old, "restartCount") + 1
    name = container["name"]
    is_over = field == "initContainers" and container.get("restartPolicy") != "Always"
    identity = container_id(pod, name, restarts)
    found: JSONObject = {
        "name": name,
        "state": {"running": {"startedAt": stamp(now)}},
        "lastState": {},
        "ready": field != "ephemeralContainers",
        "restartCount": restarts,
        "image": image,
        "imageID": f"{image.partition('@')[0].rpartition(':')[0] or image}@sha256:{_digest(image)}",
        "containerID": identity,
    }
    if is_over:
        found["state"] = {"terminated": terminated(0, stamp(now), now, identity)}
    if field != "ephemeralContainers":
        found["started"] = not is_over
    return found


def container_id(pod: JSONObject, name: str, restarts: int) -> str:
    """Return the id of a container; it is another one after each restart."""
    return f"containerd://{_digest(uid_of(pod), name, str(restarts))}"


def terminated(code: int, started: JSON, now: datetime, identity: str) -> JSONObject:
    """Return the state of a terminated container."""
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": started,
        "finishedAt": stamp(now),
        "containerID": identity,
    }


def _digest(*texts: str) -> str:
    return sha256("/".join(texts).encode()).hexdigest()
