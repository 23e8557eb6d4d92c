"""How far a Job is: which pods count, whether it has come to its end, and how many pods it wants now.

Functions of what is seen; upstream: `pkg/controller/job`. This module must never write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since, time_of
from kubesandbox.controllers.conditions import find_condition, has_condition
from kubesandbox.controllers.objects import at, labels_of, name_of, number_at
from kubesandbox.controllers.pods import conditions_of, is_active, is_terminal, phase_of, pod_from
from kubesandbox.controllers.workloads.jobindexes import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    failed_indexes,
    failures_of,
    index_of,
    is_indexed,
    succeeded_indexes,
)
from kubesandbox.controllers.workloads.jobpolicies import failing_message, failure_of, is_failed_pod, matched_success
from pyverno.kube.json import JSONObject
from pyverno.value import dataclass

__all__ = [
    "TRACKING",
    "Verdict",
    "awaiting_successor",
    "failure_delay",
    "index_delay",
    "is_finished",
    "job_pod",
    "lost_indexes",
    "verdict",
    "wanted_active",
]

TRACKING = "batch.kubernetes.io/job-tracking"
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


def verdict(job: JSONObject, pods: Sequence[JSONObject], *, failed: int, now: datetime) -> Verdict | None:
    """Return how a Job ends now, None when it goes on; `failed` counts its failures, `pods` are those it has."""
    conditions = conditions_of(job)
    for announced, kind in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
        target = find_condition(conditions, announced)
        if target is not None and target.get("status") == "True":
            return Verdict(kind, target.get("reason", ""), target.get("message", ""))
    succeeded = number_at(job, "status", "succeeded")
    completions = at(job, "spec", "completions")
    failure = _failure(job, pods, failed, now) or _failure_of_indexes(job, completions)
    if failure is not None:
        return failure
    met = matched_success(job, succeeded_indexes(job)) if is_indexed(job) else ""
    if met:
        return Verdict("Complete", "SuccessPolicy", met)
    is_working = any(is_active(pod) for pod in pods)
    is_done = succeeded > 0 and not is_working if completions is None else succeeded >= completions
    done = Verdict("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return done if is_done else None


def _failure(job: JSONObject, pods: Sequence[JSONObject], failed: int, now: datetime) -> Verdict | None:
    why = failing_message(job, pods)
    if why:
        return Verdict("Failed", "PodFailurePolicy", why)
    if failed > number_at(job, "spec", "backoffLimit", default=6) or _restarts_too_often(job, pods):
        return Verdict("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    deadline = at(job, "spec", "activeDeadlineSeconds")
    started = at(job, "status", "startTime", default="")
    if deadline is not None and started and seconds_since(started, now) >= deadline:
        return Verdict("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def _restarts_too_often(job: JSONObject, pods: Iterable[JSONObject]) -> bool:
    """Tell whether containers that are started again in their pods have used up the limit of failures."""
    if at(job, "spec", "template", "spec", "restartPolicy") != "OnFailure":
        return False
    groups = ("initContainerStatuses", "containerStatuses")
    restarts = sum(
        number_at(status, "restartCount")
        for pod in pods
        if phase_of(pod) in ("Running", "Pending")
        for group in groups
        for status in at(pod, "status", group, default=())
    )
    return restarts > 0 and restarts >= number_at(job, "spec", "backoffLimit", default=6)


def _failure_of_indexes(job: JSONObject, completions: int | None) -> Verdict | None:
    """Return the end of a Job whose completions fail each for itself."""
    if at(job, "spec", "backoffLimitPerIndex") is None or completions is None:
        return None
    lost, most = len(failed_indexes(job)), at(job, "spec", "maxFailedIndexes")
    if most is not None and lost > most:
        what = "Job has exceeded the specified maximal number of failed indexes"
        return Verdict("Failed", "MaxFailedIndexesExceeded", what)
    if lost and lost + len(succeeded_indexes(job)) >= completions:
        return Verdict("Failed", "FailedIndexes", "Job has failed indexes")
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
    """Return for how long (seconds) no pod is made, after the last failures in a row."""
    ended = sorted((_end_of(pod), phase_of(pod)) for pod in pods if is_terminal(pod))
    failures = 0
    for _, phase in reversed(ended):
        if phase != "Failed":
            break
        failures += 1
    return _delay_after(failures, ended[-1][0], now) if failures else 0.0


def index_delay(failed: JSONObject, now: datetime) -> float:
    """Return for how long (seconds) no pod is made that takes the place of a failed one of a numbered completion."""
    return _delay_after(sum(failures_of(failed)) + 1, _end_of(failed), now)


def _delay_after(failures: int, last: str, now: datetime) -> float:
    delay = float(min(_BACKOFF_SECONDS * 2 ** min(failures - 1, 10), _LONGEST_BACKOFF))
    return max(delay - seconds_since(last, now), 0.0)


def awaiting_successor(job: JSONObject, pods: Iterable[JSONObject]) -> dict[int, JSONObject]:
    """Return for each numbered completion the failed pod whose count of failures its next pod takes over.

    There are none unless completions fail each for itself, nor for completions that are done, lost or being worked on.
    """
    if at(job, "spec", "backoffLimitPerIndex") is None:
        return {}
    pods = list(pods)
    over = succeeded_indexes(job) | failed_indexes(job) | {index_of(pod) for pod in pods if is_active(pod)}
    found: dict[int, JSONObject] = {}
    for pod in sorted(pods, key=lambda pod: (sum(failures_of(pod)), _end_of(pod))):
        index = index_of(pod)
        if is_failed_pod(pod, job) and 0 <= index < number_at(job, "spec", "completions") and index not in over:
            found[index] = pod
    return found


def lost_indexes(job: JSONObject, pods: Iterable[JSONObject]) -> set[int]:
    """Return the numbered completions that failed pods have brought to their end."""
    limit = at(job, "spec", "backoffLimitPerIndex")
    found: set[int] = set()
    for pod in pods if limit is not None else ():
        index = index_of(pod)
        if not is_failed_pod(pod, job) or not 0 <= index < number_at(job, "spec", "completions"):
            continue
        failure = failure_of(job, pod)
        if failure.action == "FailIndex" or (failure.is_counted and failures_of(pod)[0] >= limit):
            found.add(index)
    return found


def _end_of(pod: JSONObject) -> str:
    statuses: Sequence[JSONObject] = at(pod, "status", "containerStatuses", default=[])
    ends = [str(at(item, "state", "terminated", "finishedAt", default="")) for item in statuses]
    ready = find_condition(conditions_of(pod), "Ready") or {}
    found = max(ends, default="") or str(ready.get("lastTransitionTime", ""))
    return found if time_of(found) else str(at(pod, "metadata", "creationTimestamp", default=""))


def job_pod(job: JSONObject, index: int | None = None, failed: JSONObject | None = None) -> JSONObject:
    """Return a pod of a Job, for one of its completions when they are numbered, after a `failed` one of it."""
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
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index), **_failure_notes(job, failed)}
    spec = {**pod["spec"], "hostname": stem}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_numbered(container) for container in spec[field]]
    return {**pod, "metadata": metadata, "spec": spec}


def _failure_notes(job: JSONObject, failed: JSONObject | None) -> dict[str, str]:
    """Return the annotations in which a pod keeps how often its completion has failed before."""
    if at(job, "spec", "backoffLimitPerIndex") is None:
        return {}
    counted, ignored = failures_of(failed) if failed is not None else (0, 0)
    if failed is not None:
        is_counted = failure_of(job, failed).is_counted
        counted, ignored = counted + is_counted, ignored + (not is_counted)
    return {FAILURES: str(counted), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def _numbered(container: JSONObject) -> JSONObject:
    if any(item.get("name") == "JOB_COMPLETION_INDEX" for item in container.get("env") or ()):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]}
