"""How far a Job is: which pods count, whether it has come to its end, and how many pods it wants now.

Functions of what is seen; upstream: `pkg/controller/job`. This module must never write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from pyverno.kube.json import JSONObject
from pyverno.sandbox.controllers.clock import seconds_since, time_of
from pyverno.sandbox.controllers.conditions import find_condition, has_condition
from pyverno.sandbox.controllers.objects import annotations_of, at, is_deleting, labels_of, name_of, number_at
from pyverno.sandbox.controllers.pods import conditions_of, is_terminal, phase_of, pod_from
from pyverno.value import dataclass

__all__ = [
    "TRACKING",
    "Verdict",
    "failure_delay",
    "index_of",
    "indexes_of",
    "is_counted_as_failed",
    "is_finished",
    "is_indexed",
    "job_pod",
    "missing_indexes",
    "verdict",
    "wanted_active",
    "written_indexes",
]

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_BACKOFF_SECONDS = 10
_LONGEST_BACKOFF = 600


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a Job ends: `kind` is `Complete` or `Failed`."""

    kind: str
    reason: str
    message: str


def is_finished(job: JSONObject) -> bool:
    """Tell whether a Job is complete or has failed."""
    conditions = conditions_of(job)
    return has_condition(conditions, "Complete") or has_condition(conditions, "Failed")


def is_indexed(job: JSONObject) -> bool:
    """Tell whether every completion has a number."""
    return bool(at(job, "spec", "completionMode") == "Indexed")


def verdict(job: JSONObject, *, succeeded: int, failed: int, active: int, now: datetime) -> Verdict | None:
    """Return how a Job ends now, None when it goes on; the counts are of its pods."""
    target = find_condition(conditions_of(job), "FailureTarget")
    if target is not None and target.get("status") == "True":
        return Verdict("Failed", target.get("reason", ""), target.get("message", ""))
    if failed > number_at(job, "spec", "backoffLimit", default=6):
        return Verdict("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = at(job, "spec", "activeDeadlineSeconds")
    started = at(job, "status", "startTime", default="")
    if deadline is not None and started and seconds_since(started, now) >= deadline:
        return Verdict("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    completions = at(job, "spec", "completions")
    is_done = succeeded > 0 and active == 0 if completions is None else succeeded >= completions
    done = Verdict("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return done if is_done else None


def wanted_active(job: JSONObject, *, succeeded: int, active: int) -> int:
    """Return how many pods shall run now."""
    parallel = number_at(job, "spec", "parallelism", default=1)
    completions = at(job, "spec", "completions")
    if at(job, "spec", "suspend", default=False):
        return 0
    if completions is None:
        return min(active, parallel) if succeeded else parallel
    return max(min(parallel, int(completions) - succeeded), 0)


def failure_delay(job: JSONObject, pods: Iterable[JSONObject], now: datetime) -> float:
    """Return for how long (seconds) no pod is made, after the last failures in a row."""
    ended = sorted((_end_of(pod), phase_of(pod)) for pod in pods if is_terminal(pod))
    failures = 0
    for _, phase in reversed(ended):
        if phase != "Failed":
            break
        failures += 1
    if not failures:
        return 0.0
    delay = float(min(_BACKOFF_SECONDS * 2 ** min(failures - 1, 10), _LONGEST_BACKOFF))
    return max(delay - seconds_since(ended[-1][0], now), 0.0)


def _end_of(pod: JSONObject) -> str:
    statuses: Sequence[JSONObject] = at(pod, "status", "containerStatuses", default=[])
    ends = [str(at(item, "state", "terminated", "finishedAt", default="")) for item in statuses]
    ready = find_condition(conditions_of(pod), "Ready") or {}
    found = max(ends, default="") or str(ready.get("lastTransitionTime", ""))
    return found if time_of(found) else str(at(pod, "metadata", "creationTimestamp", default=""))


def index_of(pod: JSONObject) -> int:
    """Return which completion a pod works on, -1 when it has no number."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else -1


def indexes_of(text: str) -> set[int]:
    """Read the numbers of completions as a status writes them.

    >>> sorted(indexes_of("0-2,5"))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def written_indexes(indexes: Iterable[int]) -> str:
    """Write numbers of completions as a status does.

    >>> written_indexes({5, 0, 1, 2, 7, 8})
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for number in sorted(indexes):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    parts = []
    for low, high in runs:
        # upstream writes two neighbours one by one, and only longer runs as a range
        parts.extend([str(low)] if low == high else [str(low), str(high)] if high == low + 1 else [f"{low}-{high}"])
    return ",".join(parts)


def missing_indexes(job: JSONObject, active: Iterable[JSONObject], count: int) -> list[int]:
    """Return the next completions to work on: neither done nor being worked on."""
    taken = indexes_of(str(at(job, "status", "completedIndexes", default=""))) | {index_of(pod) for pod in active}
    free = (number for number in range(number_at(job, "spec", "completions")) if number not in taken)
    return [number for number, _ in zip(free, range(count), strict=False)]


def job_pod(job: JSONObject, index: int | None = None) -> JSONObject:
    """Return a pod of a Job, for one of its completions when they are numbered."""
    template: JSONObject = at(job, "spec", "template", default={})
    stem = name_of(job) if index is None else f"{name_of(job)}-{index}"
    pod = pod_from(template, job, generate_name=f"{stem}-")
    uid = str(at(job, "metadata", "uid", default=""))
    own = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid,
        "job-name": name_of(job),
    }
    labels = {**own, **labels_of(pod)}
    metadata = {**pod["metadata"], "labels": labels, "finalizers": [TRACKING, *pod["metadata"].get("finalizers", [])]}
    if index is None:
        return {**pod, "metadata": metadata}
    metadata["labels"] = {**labels, INDEX: str(index)}
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index)}
    spec = {**pod["spec"], "hostname": stem}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_numbered(container) for container in spec[field]]
    return {**pod, "metadata": metadata, "spec": spec}


def _numbered(container: JSONObject) -> JSONObject:
    if any(item.get("name") == "JOB_COMPLETION_INDEX" for item in container.get("env") or ()):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]}


def is_counted_as_failed(pod: JSONObject) -> bool:
    """Tell whether a finished pod is a failure: it says so, or it was deleted before it came to its end."""
    return phase_of(pod) == "Failed" or (is_deleting(pod) and phase_of(pod) != "Succeeded")
