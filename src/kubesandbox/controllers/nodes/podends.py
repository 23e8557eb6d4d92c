"""The end of containers: their exit codes, and the status of their pod afterwards.

Pure functions of the pod. Since nothing runs, an annotation sets the exit code.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kubesandbox.controllers.clock import stamp
from kubesandbox.controllers.conditions import set_condition
from kubesandbox.controllers.nodes.podstatus import (
    CONTAINERS,
    pod_condition,
    terminated,
)
from kubesandbox.controllers.objects import annotations_of, at
from pyverno.kube.json import JSON, JSONObject

__all__ = [
    "EXIT_CODE",
    "RUN_SECONDS",
    "exit_codes",
    "finished_status",
    "run_seconds",
    "stopped_status",
    "will_finish",
]

EXIT_CODE = "fake-kubelet.sandbox/exit-code"
"""Annotation of a pod: the exit code of its containers. `EXIT_CODE.NAME` sets the code of one container."""
RUN_SECONDS = "fake-kubelet.sandbox/run-seconds"
"""Annotation of a pod: the seconds that its containers run before they end, 1 by default."""

_KILLED = 137
_MOST_DIGITS = 8


def will_finish(pod: JSONObject) -> bool:
    """Return whether the containers end by themselves: those that are not always restarted do, as in Jobs."""
    return bool(at(pod, "spec", "restartPolicy", default="Always") != "Always")


def run_seconds(pod: JSONObject) -> float:
    """Return the seconds that the containers of a pod run.

    >>> run_seconds({"metadata": {}}), run_seconds({"metadata": {"annotations": {RUN_SECONDS: "30"}}})
    (1.0, 30.0)
    >>> run_seconds({"metadata": {"annotations": {RUN_SECONDS: "9" * 400}}})
    1.0
    """
    text = annotations_of(pod).get(RUN_SECONDS, "")
    return float(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 1.0


def exit_codes(pod: JSONObject) -> dict[str, int]:
    """Return the exit code of each container, by name.

    >>> pod = {"metadata": {"annotations": {EXIT_CODE: "2"}}, "spec": {"containers": [{"name": "c"}]}}
    >>> exit_codes(pod)
    {'c': 2}
    """
    notes = annotations_of(pod)
    names = [container["name"] for container in at(pod, "spec", "containers", default=())]
    texts = {name: notes.get(f"{EXIT_CODE}.{name}", notes.get(EXIT_CODE, "0")) for name in names}
    return {name: int(text) if text.isdigit() else 0 for name, text in texts.items()}


def finished_status(pod: JSONObject, codes: Mapping[str, int], now: datetime) -> JSONObject:
    """Return the status of a running pod whose containers have ended with these codes, by name.

    Containers are never restarted, even with the `restartPolicy` `OnFailure`.
    """
    status: JSONObject = dict(pod.get("status") or {})
    statuses: list[JSONObject] = status.get(CONTAINERS) or []
    failed = [item["name"] for item in statuses if codes.get(item["name"])]
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
    return {**finished_status(pod, dict.fromkeys(names, _KILLED), now), "phase": "Failed"}


def _ended(status: JSONObject, code: int, now: datetime) -> JSONObject:
    started: JSON = at(status, "state", "running", "startedAt", default=stamp(now))
    end = terminated(code, started, now, str(status.get("containerID", "")))
    return {**status, "state": {"terminated": end}, "ready": False, "started": False}
