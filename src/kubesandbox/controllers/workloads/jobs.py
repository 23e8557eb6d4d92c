"""Jobs: pods that run to their end, until enough have succeeded or too many have failed.

Every finished pod is counted once: its uid is in `uncountedTerminatedPods` until its finalizer is removed. `jobstatus`
computes the next actions. Numbered completions, failure policies and success policies are not implemented: an `Indexed`
Job runs like any other. Finished pods are never deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kubesandbox.controllers.clock import seconds_since, stamp
from kubesandbox.controllers.conditions import condition, has_condition, set_condition
from kubesandbox.controllers.context import ControllerContext
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import at, controller_of, is_deleting, name_of, namespace_of, number_at, uid_of
from kubesandbox.controllers.pods import conditions_of, deletion_order, is_active, is_ready, is_terminal, phase_of
from kubesandbox.controllers.workloads.jobstatus import (
    TRACKING,
    Verdict,
    failure_delay,
    is_failed_pod,
    is_finished,
    job_pod,
    verdict,
    wanted_active,
)
from kubesandbox.storage.store import Key
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError

__all__ = ["Jobs", "counted"]

JOBS = "jobs.batch"
UNCOUNTED = "uncountedTerminatedPods"


class Jobs:
    """Keeps the pods of Jobs."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """Jobs and their pods."""
        return {JOBS: itself, "pods": self._context.owner(JOBS, "Job", adopts=False)}

    async def reconcile(self, key: Key) -> float | None:
        """Count finished pods, create or delete pods, and update the Job's status."""
        context = self._context
        job = context.client.get(JOBS, key.name, key.namespace)
        if job is None or is_deleting(job):
            await self._let_go(key)
            return None
        pods = [pod for pod in context.client.list("pods", key.namespace) if _is_of(pod, job)]
        if is_finished(job):
            await self._untrack([pod for pod in pods if _is_tracked(pod)])
            return await self._expire(job)
        if at(job, "spec", "managedBy", default="kubernetes.io/job-controller") != "kubernetes.io/job-controller":
            return None
        job = await self._start(job)
        job, pods = await self._count(job, pods)
        return await self._advance(job, pods)

    async def _let_go(self, key: Key) -> None:
        """Remove our finalizer from pods whose Job no longer exists."""
        for pod in self._context.client.list("pods", key.namespace):
            owner = controller_of(pod) or {}
            if owner.get("kind") != "Job" or owner.get("name") != key.name or not _is_tracked(pod):
                continue
            job = self._context.client.get(JOBS, key.name, key.namespace)
            if job is None or is_deleting(job) or uid_of(job) != owner.get("uid"):
                await self._untrack([pod])

    async def _untrack(self, pods: Iterable[JSONObject]) -> None:
        for pod in pods:
            kept = [name for name in at(pod, "metadata", "finalizers", default=[]) if name != TRACKING]
            patch = {"metadata": {"uid": uid_of(pod), "finalizers": kept or None}}
            try:
                await self._context.client.patch("pods", name_of(pod), namespace_of(pod), patch)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise

    async def _expire(self, job: JSONObject) -> float | None:
        """Delete a finished Job when its time has come."""
        seconds = at(job, "spec", "ttlSecondsAfterFinished")
        if seconds is None:
            return None
        ended = next(
            item for item in conditions_of(job) if item["type"] in ("Complete", "Failed") and item["status"] == "True"
        )
        left = float(seconds) - seconds_since(str(ended.get("lastTransitionTime", "")), self._context.clock.now())
        if left > 0:
            return left
        await self._context.client.delete(
            JOBS, name_of(job), namespace_of(job), uid=uid_of(job), propagation="Foreground"
        )
        return None

    async def _start(self, job: JSONObject) -> JSONObject:
        """Set the time at which the Job started, and the condition that it is suspended or resumed."""
        context, now = self._context, self._context.clock.now()
        status: JSONObject = dict(job.get("status") or {})
        conditions = conditions_of(job)
        is_suspended = has_condition(conditions, "Suspended")
        if at(job, "spec", "suspend", default=False):
            if not is_suspended:
                new = condition("Suspended", "True", now, reason="JobSuspended", message="Job suspended")
                status["conditions"] = set_condition(conditions, {**new, "lastProbeTime": stamp(now)})
                context.events.normal(job, "Suspended", "Job suspended")
            status.pop("startTime", None)
        else:
            if is_suspended:
                new = condition("Suspended", "False", now, reason="JobResumed", message="Job resumed")
                status["conditions"] = set_condition(conditions, {**new, "lastProbeTime": stamp(now)})
                context.events.normal(job, "Resumed", "Job resumed")
            status.setdefault("startTime", stamp(now))
        return await context.put_status(JOBS, job, status)

    async def _count(self, job: JSONObject, pods: Sequence[JSONObject]) -> tuple[JSONObject, list[JSONObject]]:
        """Count pods that have ended: note their ids, take their finalizers, then raise the counts."""
        context = self._context
        ended = [pod for pod in pods if _is_tracked(pod) and (is_terminal(pod) or is_deleting(pod))]
        noted = _noted(job, ended)
        if not ended and not any(noted.values()):
            return job, list(pods)
        job = await context.put_status(JOBS, job, {**(job.get("status") or {}), UNCOUNTED: noted})
        await self._untrack(ended)
        job = await context.put_status(JOBS, job, counted(job))
        alive = (context.client.get("pods", name_of(pod), namespace_of(pod)) for pod in pods)
        return job, [pod for pod in alive if pod is not None and _is_of(pod, job)]

    async def _advance(self, job: JSONObject, pods: Sequence[JSONObject]) -> float | None:
        context, now = self._context, self._context.clock.now()
        active = [pod for pod in pods if is_active(pod)]
        end = verdict(job, pods, failed=_failures(job, [pod for pod in pods if _is_tracked(pod)]), now=now)
        delay: float | None = None
        if end is not None:
            job = await self._announce(job, end, now)
            if end.kind == "Complete":
                await self._untrack(active)
            await context.delete_pods(job, active)
        else:
            delay = await self._scale(job, pods, active, now)
        return await self._report(job, end, delay)

    async def _scale(
        self, job: JSONObject, pods: Sequence[JSONObject], active: Sequence[JSONObject], now: datetime
    ) -> float | None:
        wanted = wanted_active(job, succeeded=number_at(job, "status", "succeeded"), active=len(active))
        if len(active) > wanted:
            # pods that this controller deletes are no failures
            excess = deletion_order(active, now)[: len(active) - wanted]
            await self._untrack(excess)
            await self._context.delete_pods(job, excess)
        elif len(active) < wanted:
            delay = failure_delay(pods, now)
            if delay:
                return delay
            await self._context.create_pods(job, [job_pod(job)] * (wanted - len(active)))
        deadline = at(job, "spec", "activeDeadlineSeconds")
        started = at(job, "status", "startTime")
        return float(deadline) - seconds_since(started, now) if deadline is not None and started else None

    async def _announce(self, job: JSONObject, end: Verdict, now: datetime) -> JSONObject:
        """Set the condition that announces the Job's outcome before its last pods end."""
        kind = "SuccessCriteriaMet" if end.kind == "Complete" else "FailureTarget"
        if has_condition(conditions_of(job), kind):
            return job
        conditions = set_condition(conditions_of(job), _condition(kind, end, now))
        return await self._context.put_status(JOBS, job, {**(job.get("status") or {}), "conditions": conditions})

    async def _report(self, job: JSONObject, end: Verdict | None, delay: float | None) -> float | None:
        context, now = self._context, self._context.clock.now()
        pods = [pod for pod in context.client.list("pods", namespace_of(job)) if _is_of(pod, job)]
        active = [pod for pod in pods if is_active(pod)]
        leaving = sum(is_deleting(pod) and not is_terminal(pod) for pod in pods)
        status: JSONObject = dict(job.get("status") or {})
        for field, count in (("active", len(active)), ("succeeded", 0), ("failed", 0)):
            number = count or (status.get(field, 0) if field != "active" else 0)
            status.pop(field, None)
            if number:
                status[field] = number
        status |= {"ready": sum(map(is_ready, active)), "terminating": leaving}
        status.setdefault(UNCOUNTED, {})
        if end is not None and not active and not leaving and not any(map(_is_tracked, pods)):
            conditions = set_condition(conditions_of(job), _condition(end.kind, end, now))
            status["conditions"] = conditions
            if end.kind == "Complete":
                status["completionTime"] = stamp(now)
                context.events.normal(job, "Completed", "Job completed")
            else:
                context.events.warning(job, end.reason, end.message)
        await context.put_status(JOBS, job, status)
        return delay


def counted(job: JSONObject) -> JSONObject:
    """Return the status of a Job in which noted pods are counted."""
    status: JSONObject = dict(job.get("status") or {})
    noted = status.get(UNCOUNTED) or {}
    failed = number_at(status, "failed") + len(noted.get("failed", ()))
    succeeded = number_at(status, "succeeded") + len(noted.get("succeeded", ()))
    status |= {"succeeded": succeeded, "failed": failed, UNCOUNTED: {}}
    return {key: value for key, value in status.items() if value or key == UNCOUNTED}


def _noted(job: JSONObject, ended: Iterable[JSONObject]) -> JSONObject:
    """Return the ids of pods that are to be counted, those included that an earlier run has noted."""
    before: JSONObject = at(job, "status", UNCOUNTED, default={})
    known = {uid for uids in before.values() for uid in uids}
    new = [pod for pod in ended if uid_of(pod) not in known]
    found = {
        "succeeded": [*before.get("succeeded", ()), *(uid_of(pod) for pod in new if phase_of(pod) == "Succeeded")],
        "failed": [*before.get("failed", ()), *(uid_of(pod) for pod in new if phase_of(pod) != "Succeeded")],
    }
    return {kind: uids for kind, uids in found.items() if uids}


def _failures(job: JSONObject, pods: Iterable[JSONObject]) -> int:
    """Return the number of failures, including pods that are not counted yet."""
    noted = at(job, "status", UNCOUNTED, "failed", default=())
    new = sum(is_failed_pod(pod) and uid_of(pod) not in noted for pod in pods)
    return number_at(job, "status", "failed") + len(noted) + new


def _condition(kind: str, end: Verdict, now: datetime) -> JSONObject:
    return {**condition(kind, "True", now, reason=end.reason, message=end.message), "lastProbeTime": stamp(now)}


def _is_of(pod: JSONObject, job: JSONObject) -> bool:
    return (controller_of(pod) or {}).get("uid") == uid_of(job)


def _is_tracked(pod: JSONObject) -> bool:
    return TRACKING in at(pod, "metadata", "finalizers", default=[])
