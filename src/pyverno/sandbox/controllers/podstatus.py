"""What a kubelet says of the pods that it runs: running, completed or failed, as a real one words it.

Functions of the pod. Nothing runs anywhere: images are not pulled and commands are not started. This module must never
write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from pyverno.errors import ValueSyntaxError
from pyverno.kube.imageref import parse_reference
from pyverno.kube.json import JSON, JSONObject
from pyverno.sandbox.controllers.clock import stamp
from pyverno.sandbox.controllers.conditions import condition, find_condition, has_condition, set_condition
from pyverno.sandbox.controllers.objects import annotations_of, at, controller_of, number_at, uid_of
from pyverno.sandbox.controllers.pods import conditions_of
from pyverno.value import replace

__all__ = ["EXIT_CODE", "exit_code", "finished_status", "image_name", "is_changed", "running_status", "will_finish"]

EXIT_CODE = "fake-kubelet.sandbox/exit-code"
"""Annotation of a Job's pod: with which code its containers end."""


def will_finish(pod: JSONObject) -> bool:
    """Tell whether the containers come to an end by themselves: those of Jobs do, at once."""
    owner = controller_of(pod)
    return owner is not None and owner.get("kind") == "Job"


def exit_code(pod: JSONObject) -> int:
    """Return the code with which containers end."""
    text = annotations_of(pod).get(EXIT_CODE, "0")
    return int(text) if text.isdigit() else 0


def running_status(pod: JSONObject, *, address: str, host: str, now: datetime) -> JSONObject:
    """Return the status of a pod whose containers all run and are ready; what it has said before stays."""
    status: JSONObject = dict(pod.get("status") or {})
    address = host if at(pod, "spec", "hostNetwork", default=False) else address
    status |= {"phase": "Running", "hostIP": host, "hostIPs": [{"ip": host}]}
    status |= {"podIP": address, "podIPs": [{"ip": address}]}
    status.setdefault("startTime", stamp(now))
    status["conditions"] = _conditions(pod, now)
    old = {item["name"]: item for group in _STATUS_FIELDS.values() for item in status.get(group, ())}
    for field, into in _STATUS_FIELDS.items():
        containers: Sequence[JSONObject] = at(pod, "spec", field, default=[])
        if containers:
            status[into] = [_container(pod, item, field, old.get(item["name"]), now) for item in containers]
    return status


def finished_status(pod: JSONObject, code: int, now: datetime) -> JSONObject:
    """Return the status of a running pod whose containers have ended with a code."""
    status: JSONObject = dict(pod.get("status") or {})
    status["phase"] = "Failed" if code else "Succeeded"
    reason = "PodFailed" if code else "PodCompleted"
    conditions: list[JSONObject] = list(status.get("conditions") or [])
    for kind in ("PodReadyToStartContainers", "Ready", "ContainersReady"):
        why = "" if kind == "PodReadyToStartContainers" else reason
        conditions = set_condition(conditions, _condition(kind, "False", now, why))
    if not code:
        conditions = set_condition(conditions, _condition("Initialized", "True", now, reason))
    status["conditions"] = conditions
    status["containerStatuses"] = [_ended(item, code, now) for item in status.get("containerStatuses") or ()]
    return status


def is_changed(pod: JSONObject) -> bool:
    """Tell whether a running pod has containers that its status does not speak of, or other images than it says."""
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
    "containers": "containerStatuses",
    "ephemeralContainers": "ephemeralContainerStatuses",
}


def _conditions(pod: JSONObject, now: datetime) -> list[JSONObject]:
    known = conditions_of(pod)
    missing = [
        gate["conditionType"]
        for gate in at(pod, "spec", "readinessGates", default=[])
        if not has_condition(known, gate["conditionType"])
    ]
    ready = _condition("Ready", "True", now)
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
        _condition("PodReadyToStartContainers", "True", now),
        _condition("Initialized", "True", now),
        ready,
        _condition("ContainersReady", "True", now),
        _condition("PodScheduled", "True", now),
    ):
        conditions = set_condition(conditions, new)
    return conditions


def _condition(kind: str, status: str, now: datetime, reason: str = "") -> JSONObject:
    found = {**condition(kind, status, now), "lastProbeTime": None}
    return {**found, "reason": reason} if reason else found


def _container(pod: JSONObject, container: JSONObject, field: str, old: JSONObject | None, now: datetime) -> JSONObject:
    image = image_name(container.get("image", ""))
    if old is not None and old.get("image") == image and old.get("containerID"):
        return old
    restarts = 0 if old is None or not old.get("containerID") else number_at(old, "restartCount") + 1
    name = container["name"]
    is_over = field == "initContainers" and container.get("restartPolicy") != "Always"
    identity = f"containerd://{_digest(uid_of(pod), name, str(restarts))}"
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
        found["state"] = {"terminated": _terminated(0, stamp(now), now, identity)}
    if field != "ephemeralContainers":
        found["started"] = not is_over
    return found


def _ended(status: JSONObject, code: int, now: datetime) -> JSONObject:
    started: JSON = at(status, "state", "running", "startedAt", default=stamp(now))
    terminated = _terminated(code, started, now, str(status.get("containerID", "")))
    return {**status, "state": {"terminated": terminated}, "ready": False, "started": False}


def _terminated(code: int, started: str, now: datetime, identity: str) -> JSONObject:
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": started,
        "finishedAt": stamp(now),
        "containerID": identity,
    }


def _digest(*texts: str) -> str:
    return sha256("/".join(texts).encode()).hexdigest()
