"""The row of a pod: how many containers are ready, what it is up to, how often it restarted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubesandbox.tables.cells import (
    NONE,
    age,
    container_cells,
    count,
    flag,
    human_duration,
    labels_text,
    moment,
    name_of,
    objects,
    part,
    text,
)
from kubesandbox.tables.printer import Printer, Printers, columns
from pyverno.kube.json import JSON, JSONObject
from pyverno.value import dataclass

__all__ = ["PRINTERS"]

_CONDITIONS = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@dataclass(slots=True)
class _Summary:
    """The sum of the containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def count_restarts(self, status: JSONObject) -> None:
        """Add the restarts of one container."""
        self.restarts += count(status, "restartCount")
        finished = moment(part(status, "lastState", "terminated", "finishedAt"))
        if finished is not None and (self.last_restart is None or finished > self.last_restart):
            self.last_restart = finished


def _pod(body: JSONObject, now: datetime) -> list[JSON]:
    sidecars = {text(item, "name") for item in objects(body, "spec", "initContainers") if _is_sidecar(item)}
    summary = _summary(body, sidecars)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts += f" ({human_duration(now - summary.last_restart)} ago)"
    return [
        name_of(body),
        f"{summary.ready}/{count(body, 'spec', 'containers') + len(sidecars)}",
        _status(body, summary.reason),
        restarts,
        age(body, now),
        next((text(item, "ip") for item in objects(body, "status", "podIPs")), "") or NONE,
        text(body, "spec", "nodeName") or NONE,
        text(body, "status", "nominatedNodeName") or NONE,
        _gates(body),
    ]


def _summary(body: JSONObject, sidecars: set[str]) -> _Summary:
    reason = text(body, "status", "reason") or text(body, "status", "phase")
    conditions = objects(body, "status", "conditions")
    if any((text(item, "type"), text(item, "reason")) == ("PodScheduled", "SchedulingGated") for item in conditions):
        reason = "SchedulingGated"
    before = _Summary(reason)
    running = _Summary(reason)
    is_initializing = _initialize(body, sidecars, before, running)
    if is_initializing and not _is_true(body, "Initialized"):
        return before
    running.ready = before.ready
    running.reason = before.reason
    _run(body, running)
    return running


def _initialize(body: JSONObject, sidecars: set[str], before: _Summary, running: _Summary) -> bool:
    """Look at the init containers in order; True when one of them still holds up the pod.

    `running` gets the restarts of sidecars alone, which count on once the pod runs.
    """
    for index, status in enumerate(objects(body, "status", "initContainerStatuses")):
        is_sidecar = text(status, "name") in sidecars
        before.count_restarts(status)
        if is_sidecar:
            running.count_restarts(status)
        terminated = part(status, "state", "terminated")
        waiting = text(status, "state", "waiting", "reason")
        if terminated is not None and not count(terminated, "exitCode"):
            continue
        if is_sidecar and flag(status, "started"):
            before.ready += flag(status, "ready")
            continue
        if terminated is not None:
            before.reason = f"Init:{_end(terminated)}"
        elif waiting not in ("", "PodInitializing"):
            before.reason = f"Init:{waiting}"
        else:
            before.reason = f"Init:{index}/{count(body, 'spec', 'initContainers')}"
        return True
    return False


def _run(body: JSONObject, summary: _Summary) -> None:
    """Look at the containers; the first one in trouble gives the pod its word."""
    is_running = False
    error = ""
    for status in reversed(objects(body, "status", "containerStatuses")):
        summary.count_restarts(status)
        terminated = part(status, "state", "terminated")
        waiting = text(status, "state", "waiting", "reason")
        if waiting:
            summary.reason = waiting
        elif terminated is not None:
            summary.reason = _end(terminated)
            if count(terminated, "exitCode"):
                error = summary.reason
        elif flag(status, "ready") and part(status, "state", "running") is not None:
            is_running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if is_running and _is_true(body, "Ready"):
            summary.reason = "Running"
        elif error:
            summary.reason = error
        elif is_running:
            summary.reason = "NotReady"


def _end(terminated: JSON) -> str:
    signal = count(terminated, "signal")
    return text(terminated, "reason") or (f"Signal:{signal}" if signal else f"ExitCode:{count(terminated, 'exitCode')}")


def _status(body: JSONObject, reason: str) -> str:
    if part(body, "metadata", "deletionTimestamp") is None:
        return reason
    if text(body, "status", "reason") == "NodeLost":
        return "Unknown"
    return reason if text(body, "status", "phase") in _CONDITIONS else "Terminating"


def _gates(body: JSONObject) -> str:
    gates = [text(gate, "conditionType") for gate in objects(body, "spec", "readinessGates")]
    return f"{sum(_is_true(body, gate) for gate in gates)}/{len(gates)}" if gates else NONE


def _is_sidecar(container: JSONObject) -> bool:
    return text(container, "restartPolicy") == "Always"


def _is_true(body: JSONObject, kind: str) -> bool:
    found = next((item for item in objects(body, "status", "conditions") if text(item, "type") == kind), None)
    return text(found, "status") == "True"


def _conditions(body: JSONObject) -> list[JSONObject]:
    phase = text(body, "status", "phase")
    if phase not in _CONDITIONS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _CONDITIONS[phase]}]


def _pod_template(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield from container_cells(part(body, "template", "spec"))
    yield labels_text(part(body, "template", "metadata", "labels"))


PRINTERS: Printers = {
    ("", "pods"): Printer(
        columns("NAME Ready Status Restarts AGE IP* Node* Nominated_Node* Readiness_Gates*"), _pod, _conditions
    ),
    ("", "podtemplates"): Printer(columns("NAME Containers Images Pod_Labels"), _pod_template),
}
