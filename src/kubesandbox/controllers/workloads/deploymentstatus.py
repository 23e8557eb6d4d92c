"""The status of a Deployment: its counts, and whether it is available and progresses.

Pure functions; upstream: `pkg/controller/deployment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since, stamp
from kubesandbox.controllers.conditions import condition, find_condition, without_condition
from kubesandbox.controllers.objects import at, name_of, number_at
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.controllers.workloads.rollout import max_unavailable, replicas_of, total
from pyverno.kube.json import JSONObject

__all__ = ["deadline_in", "deployment_status", "is_complete", "with_progress"]

NO_DEADLINE = 2**31 - 1


def counts_of(deployment: JSONObject, sets: Sequence[JSONObject], new: JSONObject | None) -> JSONObject:
    """Return the status with new counts and the condition `Available`; other conditions stay."""

    def summed(field: str) -> int:
        return sum(number_at(item, "status", field) for item in sets)

    available = summed("availableReplicas")
    counts = {
        "observedGeneration": number_at(deployment, "metadata", "generation"),
        "replicas": summed("replicas"),
        "updatedReplicas": 0 if new is None else number_at(new, "status", "replicas"),
        "readyReplicas": summed("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(total(sets) - available, 0),
        "collisionCount": number_at(deployment, "status", "collisionCount"),
    }
    return {
        **{field: count for field, count in counts.items() if count},
        "conditions": conditions_of(deployment),
    }


def deployment_status(
    deployment: JSONObject,
    sets: Sequence[JSONObject],
    new: JSONObject | None,
    now: datetime,
    *,
    is_rollout: bool = True,
) -> JSONObject:
    """Return the whole status; without `is_rollout` (paused, scaling) progress is not judged."""
    status = counts_of(deployment, sets, new)
    enough = replicas_of(deployment) - max_unavailable(deployment)
    if status.get("availableReplicas", 0) >= enough:
        available = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        available = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = _with(status["conditions"], "Available", now, available)
    if is_rollout:
        status["conditions"] = _progress(deployment, status, sets, new, now)
    if not status["conditions"]:
        del status["conditions"]
    return status


def with_progress(deployment: JSONObject, status: str, reason: str, message: str, now: datetime) -> JSONObject:
    """Return the status of a Deployment with another condition `Progressing`, and nothing else changed."""
    conditions = _with(conditions_of(deployment), "Progressing", now, (status, reason, message))
    return {**at(deployment, "status", default={}), "conditions": conditions}


def is_complete(deployment: JSONObject, status: JSONObject) -> bool:
    """Return whether all wanted pods are of the newest template, available, and no others are left."""
    wanted = replicas_of(deployment)
    counts = {status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas")}
    return counts == {wanted} and status.get("observedGeneration", 0) >= number_at(deployment, "metadata", "generation")


def deadline_in(deployment: JSONObject, status: JSONObject, now: datetime) -> float | None:
    """Return the seconds until an unfinished rollout exceeds its deadline, None if it cannot."""
    progressing = find_condition(status.get("conditions", ()), "Progressing")
    if not _has_deadline(deployment) or progressing is None or is_complete(deployment, status):
        return None
    if progressing.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    left = _deadline(deployment) - seconds_since(str(progressing.get("lastUpdateTime", "")), now)
    return max(left, 0) + 1


def _progress(
    deployment: JSONObject, status: JSONObject, sets: Sequence[JSONObject], new: JSONObject | None, now: datetime
) -> list[JSONObject]:
    conditions: list[JSONObject] = status["conditions"]
    if not _has_deadline(deployment):
        conditions = without_condition(conditions, "Progressing")
    current = find_condition(conditions, "Progressing")
    is_settled = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and current is not None
        and current.get("reason") == "NewReplicaSetAvailable"
    )
    subject = f'Deployment "{name_of(deployment)}"' if new is None else f'ReplicaSet "{name_of(new)}"'
    if _has_deadline(deployment) and not is_settled:
        if is_complete(deployment, status):
            found = ("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
            conditions = _with(conditions, "Progressing", now, found)
        elif _moved(at(deployment, "status", default={}), status):
            found = ("True", "ReplicaSetUpdated", f"{subject} is progressing.")
            # progress counts from here on, even when it looks as before
            conditions = _with(conditions, "Progressing", now, found, is_news=True)
        elif _is_late(deployment, current, now):
            found = ("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
            conditions = _with(conditions, "Progressing", now, found)
    failure = _failure(sets, new)
    if failure is None:
        return without_condition(conditions, "ReplicaFailure")
    found = (failure["status"], failure.get("reason", ""), failure.get("message", ""))
    return _with(conditions, "ReplicaFailure", now, found)


def _moved(before: JSONObject, after: JSONObject) -> bool:
    def old(status: JSONObject) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    return old(after) < old(before) or any(
        after.get(field, 0) > before.get(field, 0)
        for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _is_late(deployment: JSONObject, current: JSONObject | None, now: datetime) -> bool:
    if current is None or current.get("reason") == "NewReplicaSetAvailable":
        return False
    if current.get("reason") == "ProgressDeadlineExceeded":
        return True
    return seconds_since(str(current.get("lastUpdateTime", "")), now) > _deadline(deployment)


def _failure(sets: Sequence[JSONObject], new: JSONObject | None) -> JSONObject | None:
    for item in (*([new] if new is not None else []), *sets):
        found = find_condition(conditions_of(item), "ReplicaFailure")
        if found is not None:
            return found
    return None


def _deadline(deployment: JSONObject) -> int:
    return number_at(deployment, "spec", "progressDeadlineSeconds", default=NO_DEADLINE)


def _has_deadline(deployment: JSONObject) -> bool:
    return _deadline(deployment) != NO_DEADLINE


def _with(
    conditions: Sequence[JSONObject], kind: str, now: datetime, state: tuple[str, str, str], *, is_news: bool = False
) -> list[JSONObject]:
    """Set a condition to (status, reason, message); equal status and reason change nothing unless `is_news` is set."""
    status, reason, message = state
    old = find_condition(conditions, kind)
    if old is not None and not is_news and (old.get("status"), old.get("reason")) == (status, reason):
        return list(conditions)
    new = {**condition(kind, status, now, reason=reason, message=message), "lastUpdateTime": stamp(now)}
    if old is not None and old.get("status") == status:
        new["lastTransitionTime"] = old.get("lastTransitionTime", new["lastTransitionTime"])
    return [*without_condition(conditions, kind), new]
