"""How the containers of pods end: with which code, what their pod says then, and when they start again.

Functions of the pod. Which code that is says an annotation, since nothing runs. This module must never write.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since, stamp
from kubesandbox.controllers.conditions import set_condition
from kubesandbox.controllers.nodes.podstatus import (
    CONTAINERS,
    container_id,
    pod_condition,
    ready_conditions,
    terminated,
)
from kubesandbox.controllers.objects import (
    annotations_of,
    at,
    controller_of,
    name_of,
    namespace_of,
    number_at,
    uid_of,
)
from kubesandbox.controllers.workloads.jobindexes import failures_of, index_of
from pyverno.kube.json import JSON, JSONObject
from pyverno.kube.time.duration import duration_from_seconds, format_duration

__all__ = [
    "EXIT_CODE",
    "exit_codes",
    "finished_status",
    "restart_delay",
    "restarted_status",
    "stopped_status",
    "will_finish",
]

EXIT_CODE = "fake-kubelet.sandbox/exit-code"
"""Annotation of a Job's pod: with which code its containers end.

Several codes (`1,1,0`) are those of one run after another, the last one stays. `EXIT_CODE.NAME` is about one container,
`EXIT_CODE.NUMBER` about the pods of one completion.
"""

_KILLED = 137
_FIRST_WAIT, _LONGEST_WAIT = 10, 300


def will_finish(pod: JSONObject) -> bool:
    """Tell whether the containers come to an end by themselves: those of Jobs do, at once."""
    owner = controller_of(pod)
    return owner is not None and owner.get("kind") == "Job"


def exit_codes(pod: JSONObject) -> dict[str, int]:
    """Return the codes with which the containers that run now end, by their names.

    >>> pod = {"metadata": {"annotations": {EXIT_CODE: "2,0"}}, "spec": {"containers": [{"name": "c"}]}}
    >>> exit_codes(pod), exit_codes({**pod, "status": {"containerStatuses": [{"name": "c", "restartCount": 1}]}})
    ({'c': 2}, {'c': 0})
    """
    restarts = {item["name"]: number_at(item, "restartCount") for item in at(pod, "status", CONTAINERS, default=())}
    names = [container["name"] for container in at(pod, "spec", "containers", default=())]
    before = sum(failures_of(pod))
    return {name: _exit_code(pod, name, before + restarts.get(name, 0)) for name in names}


def _exit_code(pod: JSONObject, name: str, run: int) -> int:
    notes = annotations_of(pod)
    keys = (f"{EXIT_CODE}.{name}", f"{EXIT_CODE}.{index_of(pod)}", EXIT_CODE)
    codes = next((notes[key] for key in keys if key in notes), "0").split(",")
    text = codes[min(run, len(codes) - 1)].strip()
    return int(text) if text.isdigit() else 0


def finished_status(pod: JSONObject, codes: Mapping[str, int], now: datetime) -> JSONObject:
    """Return the status of a running pod whose containers have ended with these codes, by their names.

    Where failures are tried again in the same pod (`OnFailure`) it goes on running.
    """
    status: JSONObject = dict(pod.get("status") or {})
    statuses: list[JSONObject] = status.get(CONTAINERS) or []
    failed = [item["name"] for item in statuses if codes.get(item["name"])]
    if failed and at(pod, "spec", "restartPolicy") == "OnFailure":
        status[CONTAINERS] = [_crashed(pod, item, codes.get(item["name"], 0), now) for item in statuses]
        unready = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{' '.join(failed)}]"}
        for kind in ("Ready", "ContainersReady"):
            new = {**pod_condition(kind, "False", now), **unready}
            status["conditions"] = set_condition(list(status.get("conditions") or []), new)
        return status
    status["phase"] = "Failed" if failed else "Succeeded"
    reason = "PodFailed" if failed else "PodCompleted"
    conditions: list[JSONObject] = list(status.get("conditions") or [])
    for kind in ("PodReadyToStartContainers", "Ready", "ContainersReady"):
        why = "" if kind == "PodReadyToStartContainers" else reason
        conditions = set_condition(conditions, pod_condition(kind, "False", now, why))
    if not failed:
        conditions = set_condition(conditions, pod_condition("Initialized", "True", now, reason))
    status["conditions"] = conditions
    status[CONTAINERS] = [_ended(item, codes.get(item["name"], 0), now) for item in statuses]
    return status


def stopped_status(pod: JSONObject, now: datetime) -> JSONObject:
    """Return the status of a pod whose containers were stopped because it is being deleted."""
    names = [container["name"] for container in at(pod, "spec", "containers", default=())]
    once = {**pod, "spec": {**pod["spec"], "restartPolicy": "Never"}}
    return {**finished_status(once, dict.fromkeys(names, _KILLED), now), "phase": "Failed"}


def restart_delay(pod: JSONObject, now: datetime) -> float | None:
    """Return in how many seconds ended containers of a pod start again, None when there are none that will."""
    if at(pod, "spec", "restartPolicy") != "OnFailure":
        return None
    waits = [
        _wait_after(number_at(item, "restartCount")) - seconds_since(at(ended, "finishedAt", default=""), now)
        for item in at(pod, "status", CONTAINERS, default=())
        if (ended := _failure_of(item)) is not None
    ]
    return max(min(waits), 0.0) if waits else None


def restarted_status(pod: JSONObject, now: datetime) -> JSONObject:
    """Return the status of a pod whose failed containers run again, those whose time has come."""
    status: JSONObject = dict(pod.get("status") or {})
    again: list[JSONObject] = []
    for item in status.get(CONTAINERS) or ():
        ended, restarts = _failure_of(item), number_at(item, "restartCount")
        if ended is None or seconds_since(at(ended, "finishedAt", default=""), now) < _wait_after(restarts):
            again.append(item)
            continue
        again.append(
            {
                **item,
                "state": {"running": {"startedAt": stamp(now)}},
                "lastState": {"terminated": ended},
                "ready": True,
                "started": True,
                "restartCount": restarts + 1,
                "containerID": container_id(pod, item["name"], restarts + 1),
            }
        )
    status |= {CONTAINERS: again, "conditions": ready_conditions(pod, now)}
    return status


def _failure_of(status: JSONObject) -> JSONObject | None:
    """Return how a container ended that is to start again."""
    state = status.get("state") or {}
    ended: JSONObject | None = state.get("terminated")
    if state.get("waiting"):
        ended = at(status, "lastState", "terminated")
    return ended if ended is not None and ended.get("exitCode") else None


def _crashed(pod: JSONObject, status: JSONObject, code: int, now: datetime) -> JSONObject:
    """Return the status of a container that ended and, with a code other than zero, is to start again."""
    ended = _ended(status, code, now)
    wait = _wait_after(number_at(status, "restartCount"))
    if not code or not wait:
        return ended
    place = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    backoff = format_duration(duration_from_seconds(wait))
    message = f"back-off {backoff} restarting failed container={status['name']} pod={place}"
    waiting = {"reason": "CrashLoopBackOff", "message": message}
    return {**ended, "state": {"waiting": waiting}, "lastState": ended["state"]}


def _wait_after(restarts: int) -> int:
    """Return how long (seconds) a container that was started again so often waits for the next time."""
    return min(_FIRST_WAIT * 2 ** min(restarts - 1, 10), _LONGEST_WAIT) if restarts else 0


def _ended(status: JSONObject, code: int, now: datetime) -> JSONObject:
    started: JSON = at(status, "state", "running", "startedAt", default=stamp(now))
    end = terminated(code, started, now, str(status.get("containerID", "")))
    return {**status, "state": {"terminated": end}, "ready": False, "started": False}
