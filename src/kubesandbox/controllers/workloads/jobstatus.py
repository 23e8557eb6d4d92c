"""The progress of a Job: its counted pods, its end, and the number of pods to run now.

Pure functions; upstream: `pkg/controller/job`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since, time_of
from kubesandbox.controllers.conditions import find_condition, has_condition
from kubesandbox.controllers.objects import at, is_deleting, labels_of, name_of, number_at
from kubesandbox.controllers.pods import conditions_of, is_active, is_terminal, phase_of, pod_from
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = [
    "TRACKING",
    "Verdict",
    "failure_delay",
    "is_failed_pod",
    "is_finished",
    "job_pod",
    "verdict",
    "wanted_active",
]

TRACKING = "batch.kubernetes.io/job-tracking"
_BACKOFF_SECONDS = 10
_LONGEST_BACKOFF = 600


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a Job: `kind` is `Complete` or `Failed`."""

    kind: str
    reason: str
    message: str


def is_finished(job: JSONObject) -> bool:
    """Return whether a Job is complete or has failed."""
    conditions = conditions_of(job)
    return has_condition(conditions, "Complete") or has_condition(conditions, "Failed")


def verdict(job: JSONObject, pods: Sequence[JSONObject], *, failed: int, now: datetime) -> Verdict | None:
    """Return the end of a Job, None if it continues; `failed` counts its failures, `pods` are its pods."""
    conditions = conditions_of(job)
    for announced, kind in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
        target = find_condition(conditions, announced)
        if target is not None and target.get("status") == "True":
            return Verdict(kind, target.get("reason", ""), target.get("message", ""))
    succeeded = number_at(job, "status", "succeeded")
    completions = at(job, "spec", "completions")
    failure = _failure(job, failed, now)
    if failure is not None:
        return failure
    is_working = any(is_active(pod) for pod in pods)
    is_done = succeeded > 0 and not is_working if completions is None else succeeded >= completions
    done = Verdict("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return done if is_done else None


def is_failed_pod(pod: JSONObject) -> bool:
    """Return whether a pod counts as a failure: it has failed, or it was deleted before it finished."""
    return phase_of(pod) == "Failed" or (is_deleting(pod) and phase_of(pod) != "Succeeded")


def _failure(job: JSONObject, failed: int, now: datetime) -> Verdict | None:
    if failed > number_at(job, "spec", "backoffLimit", default=6):
        return Verdict("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = at(job, "spec", "activeDeadlineSeconds")
    started = at(job, "status", "startTime", default="")
    if deadline is not None and started and seconds_since(started, now) >= deadline:
        return Verdict("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def wanted_active(job: JSONObject, *, succeeded: int, active: int) -> int:
    """Return how many pods shall run now."""
    parallel = number_at(job, "spec", "parallelism", default=1)
    completions = at(job, "spec", "completions")
    if at(job, "spec", "suspend", default=False):
        return 0
    if completions is None:
        return min(active, parallel) if succeeded else parallel
    return max(min(parallel, int(completions) - succeeded), 0)


def failure_delay(pods: Iterable[JSONObject], now: datetime) -> float:
    """Return the seconds of backoff after the last failures in a row."""
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


def job_pod(job: JSONObject) -> JSONObject:
    """Return a new pod of a Job."""
    template: JSONObject = at(job, "spec", "template", default={})
    pod = pod_from(template, job, generate_name=f"{name_of(job)}-")
    uid = str(at(job, "metadata", "uid", default=""))
    own = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name_of(job),
        "controller-uid": uid,
        "job-name": name_of(job),
    }
    finalizers = [TRACKING, *pod["metadata"].get("finalizers", [])]
    return {**pod, "metadata": {**pod["metadata"], "labels": {**own, **labels_of(pod)}, "finalizers": finalizers}}
