"""Rows of what makes pods, and of what scales and protects them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kubesandbox.tables.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    age,
    container_cells,
    count,
    human_duration,
    labels_text,
    moment,
    name_of,
    objects,
    part,
    quantity,
    selector_text,
    shortened,
    since,
    text,
)
from kubesandbox.tables.printer import Printer, Printers, columns
from kubesandbox.types.conversion import autoscaler_to_v2
from pyverno.kube.json import JSON, JSONObject

__all__ = ["PRINTERS"]


def _deployment(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield f"{count(body, 'status', 'readyReplicas')}/{count(body, 'spec', 'replicas')}"
    yield count(body, "status", "updatedReplicas")
    yield count(body, "status", "availableReplicas")
    yield age(body, now)
    yield from container_cells(part(body, "spec", "template", "spec"))
    yield selector_text(part(body, "spec", "selector"), empty="")


def _replica_set(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield from _replicas(body, now)
    yield selector_text(part(body, "spec", "selector"))


def _replicas(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield count(body, "spec", "replicas")
    yield count(body, "status", "replicas")
    yield count(body, "status", "readyReplicas")
    yield age(body, now)
    yield from container_cells(part(body, "spec", "template", "spec"))


def _stateful_set(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield f"{count(body, 'status', 'readyReplicas')}/{count(body, 'spec', 'replicas')}"
    yield age(body, now)
    yield from container_cells(part(body, "spec", "template", "spec"))


def _daemon_set(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    for field in (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ):
        yield count(body, "status", field)
    yield labels_text(part(body, "spec", "template", "spec", "nodeSelector"))
    yield age(body, now)
    yield from container_cells(part(body, "spec", "template", "spec"))
    yield selector_text(part(body, "spec", "selector"))


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)
"""Conditions and the words for them, the first that holds counts; the empty one is that of a deleted job."""


def _job(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield _job_status(body)
    yield _completions(body)
    yield _job_duration(body, now)
    yield age(body, now)
    yield from container_cells(part(body, "spec", "template", "spec"))
    yield selector_text(part(body, "spec", "selector"))


def _job_status(body: JSONObject) -> str:
    conditions: dict[str, str] = {}
    for item in objects(body, "status", "conditions"):
        conditions.setdefault(text(item, "type"), text(item, "status"))
    if part(body, "metadata", "deletionTimestamp") is not None:
        conditions[""] = "True"
    return next((word for kind, word in _JOB_STATES if conditions.get(kind) == "True"), "Running")


def _completions(body: JSONObject) -> str:
    succeeded = count(body, "status", "succeeded")
    if part(body, "spec", "completions") is not None:
        return f"{succeeded}/{count(body, 'spec', 'completions')}"
    parallelism = count(body, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(body: JSONObject, now: datetime) -> str:
    start = moment(part(body, "status", "startTime"))
    if start is None:
        return ""
    return human_duration((moment(part(body, "status", "completionTime")) or now) - start)


def _cron_job(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield text(body, "spec", "schedule")
    yield text(body, "spec", "timeZone") or NONE
    suspended = part(body, "spec", "suspend")
    yield UNSET if suspended is None else str(bool(suspended))
    yield count(body, "status", "active")
    last = part(body, "status", "lastScheduleTime")
    yield since(last, now) if last is not None else NONE
    yield age(body, now)
    yield from container_cells(part(body, "spec", "jobTemplate", "spec", "template", "spec"))
    yield selector_text(part(body, "spec", "jobTemplate", "spec", "selector"))


def _disruption_budget(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    for field in ("minAvailable", "maxUnavailable"):
        found = part(body, "spec", field)
        yield "N/A" if found is None else str(found)
    yield count(body, "status", "disruptionsAllowed")
    yield age(body, now)


def _autoscaler(body: JSONObject, now: datetime) -> Iterator[JSON]:
    yield name_of(body)
    yield f"{text(body, 'spec', 'scaleTargetRef', 'kind')}/{text(body, 'spec', 'scaleTargetRef', 'name')}"
    yield _metrics(body)
    minimum = part(body, "spec", "minReplicas")
    yield UNSET if minimum is None else str(minimum)
    yield count(body, "spec", "maxReplicas")
    yield count(body, "status", "currentReplicas")
    yield age(body, now)


def _metrics(body: JSONObject) -> str:
    """Write current and wanted values of the metrics, those of v1 included."""
    if part(body, "spec", "metrics") is None:
        body = autoscaler_to_v2(body)
    currents = objects(body, "status", "currentMetrics")
    metrics = objects(body, "spec", "metrics")
    written = [
        _metric(metric, currents[place] if place < len(currents) else {}) for place, metric in enumerate(metrics)
    ]
    return shortened(written, 2, separator=", ")


_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(metric: JSONObject, status: JSONObject) -> str:
    kind = text(metric, "type")
    field = _SOURCES.get(kind)
    if field is None:
        return "<unknown type>"
    target = part(metric, field, "target")
    current = part(status, field, "current")
    prefix = f"{text(metric, field, 'name')}: " if kind.endswith("Resource") else ""
    if part(target, "averageValue") is not None:
        suffix = " (avg)" if kind in ("External", "Object") else ""
        return f"{prefix}{_current(current, 'averageValue')}/{quantity(part(target, 'averageValue'))}{suffix}"
    if not prefix:
        return f"{_current(current, 'value')}/{quantity(part(target, 'value'))}"
    wanted, found = part(target, "averageUtilization"), part(current, "averageUtilization")
    return f"{prefix}{UNKNOWN if found is None else f'{found}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _current(current: JSON, field: str) -> str:
    found = part(current, field)
    return UNKNOWN if found is None else quantity(found)


_WIDE = "Containers* Images* Selector*"

PRINTERS: Printers = {
    ("apps", "daemonsets"): Printer(
        columns(
            "NAME Desired:integer Current:integer Ready:integer Up-to-date:integer Available:integer Node_Selector AGE "
            + _WIDE
        ),
        _daemon_set,
    ),
    ("apps", "deployments"): Printer(columns(f"NAME Ready Up-to-date Available AGE {_WIDE}"), _deployment),
    ("apps", "replicasets"): Printer(
        columns(f"NAME Desired:integer Current:integer Ready:integer AGE {_WIDE}"), _replica_set
    ),
    ("apps", "statefulsets"): Printer(columns("NAME Ready AGE Containers* Images*"), _stateful_set),
    ("autoscaling", "horizontalpodautoscalers"): Printer(
        columns("NAME Reference Targets MinPods MaxPods Replicas AGE"), _autoscaler
    ),
    ("batch", "cronjobs"): Printer(
        columns(f"NAME Schedule Timezone Suspend:boolean Active:integer Last_Schedule AGE {_WIDE}"), _cron_job
    ),
    ("batch", "jobs"): Printer(columns(f"NAME Status Completions Duration AGE {_WIDE}"), _job),
    ("policy", "poddisruptionbudgets"): Printer(
        columns("NAME Min_Available Max_Unavailable Allowed_Disruptions:integer AGE"), _disruption_budget
    ),
}
