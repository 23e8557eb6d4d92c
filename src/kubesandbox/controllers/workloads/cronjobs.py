"""CronJobs: Jobs made by the clock.

This module must never make two Jobs for one time of the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from kubesandbox.controllers.clock import stamp, time_of
from kubesandbox.controllers.conditions import has_condition
from kubesandbox.controllers.context import ControllerContext, is_namespace_ending
from kubesandbox.controllers.loop import Keys, itself
from kubesandbox.controllers.objects import (
    at,
    is_deleting,
    is_owned_by,
    name_of,
    namespace_of,
    number_at,
    owner_reference,
    uid_of,
)
from kubesandbox.controllers.pods import conditions_of
from kubesandbox.controllers.workloads.jobstatus import is_finished
from kubesandbox.storage.store import Key
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSONObject
from pyverno.kube.status import StatusError
from pyverno.kube.time.cron import Schedule, parse_standard
from pyverno.kube.time.gotime import unix_time
from pyverno.value import dataclass

__all__ = ["CronJobs", "Due", "due_time", "job_of", "schedule_of"]


CRON_JOBS = "cronjobs.batch"
JOBS = "jobs.batch"
MANY = 100
SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


@dataclass(frozen=True, slots=True)
class Due:
    """The last missed time of a schedule, if any, the next time, and the number of missed times."""

    last: datetime | None
    next: datetime | None
    missed: int = 0


class CronJobs:
    """Makes Jobs when they are due."""

    def __init__(self, context: ControllerContext) -> None:
        """Take the tools."""
        self._context = context

    @property
    def watches(self) -> Mapping[str, Keys]:
        """CronJobs and their Jobs."""
        return {CRON_JOBS: itself, JOBS: self._context.owner(CRON_JOBS, "CronJob", adopts=False)}

    async def reconcile(self, key: Key) -> float | None:
        """Update the state of existing Jobs, create one when it is due, and return when the next one will be."""
        context = self._context
        body = context.client.get(CRON_JOBS, key.name, key.namespace)
        if body is None or is_deleting(body):
            return None
        jobs = [job for job in context.client.list(JOBS, key.namespace) if is_owned_by(job, body)]
        body = await self._settle(body, jobs)
        await self._clean(body, jobs)
        if at(body, "spec", "suspend", default=False):
            return None
        try:
            schedule = schedule_of(body)
        except ValueSyntaxError as error:
            text = f'unparseable schedule: "{at(body, "spec", "schedule", default="")}" : {error.message}'
            context.events.warning(body, "UnparseableSchedule", text)
            return None
        due = due_time(body, schedule, context.clock.now())
        if due.last is not None:
            await self._run(body, due, due.last)
        return None if due.next is None else (due.next - context.clock.now()).total_seconds()

    async def _settle(self, body: JSONObject, jobs: Sequence[JSONObject]) -> JSONObject:
        """Take finished and missing Jobs off the list of active ones."""
        status: JSONObject = dict(body.get("status") or {})
        listed = {item.get("uid") for item in status.get("active") or ()}
        by_uid = {uid_of(job): job for job in jobs}
        for uid, job in by_uid.items():
            if uid in listed and is_finished(job):
                kind = "Complete" if has_condition(conditions_of(job), "Complete") else "Failed"
                text = f"Saw completed job: {name_of(job)}, condition: {kind}"
                self._context.events.normal(body, "SawCompletedJob", text)
        active = [job for job in jobs if not is_finished(job)]
        ends = [at(job, "status", "completionTime") for job in jobs if has_condition(conditions_of(job), "Complete")]
        last = max([status.get("lastSuccessfulTime", ""), *filter(None, ends)])
        status.pop("active", None)
        if active:
            status["active"] = [_job_reference(job) for job in active]
        if last:
            status["lastSuccessfulTime"] = last
        return await self._context.put_status(CRON_JOBS, body, status)

    async def _clean(self, body: JSONObject, jobs: Sequence[JSONObject]) -> None:
        """Delete the oldest finished Jobs beyond the history limits."""
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = [job for job in jobs if has_condition(conditions_of(job), kind)]
            ended.sort(key=lambda job: (str(at(job, "status", "startTime", default="")), name_of(job)))
            limit = number_at(body, "spec", field, default=default)
            for job in ended[: max(len(ended) - limit, 0)]:
                await self._delete(body, job)

    async def _delete(self, body: JSONObject, job: JSONObject) -> None:
        try:
            await self._context.client.delete(
                JOBS, name_of(job), namespace_of(job), uid=uid_of(job), propagation="Background"
            )
        except StatusError as error:
            if error.reason != "NotFound":
                self._context.events.warning(body, "FailedDelete", f"Deleted job: {error}")
                raise
        self._context.events.normal(body, "SuccessfulDelete", f"Deleted job {name_of(job)}")

    async def _run(self, body: JSONObject, due: Due, time: datetime) -> None:
        context = self._context
        if due.missed > MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            context.events.warning(body, "TooManyMissedTimes", text)
        deadline = at(body, "spec", "startingDeadlineSeconds")
        if deadline is not None and (context.clock.now() - time).total_seconds() > deadline:
            text = f"Missed scheduled time to start a job: {time.strftime('%a, %d %b %Y %H:%M:%S +0000')}"
            context.events.warning(body, "MissSchedule", text)
            return
        policy = at(body, "spec", "concurrencyPolicy", default="Allow")
        active: list[JSONObject] = at(body, "status", "active", default=[])
        if active and policy == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            context.events.normal(body, "JobAlreadyActive", text)
            return
        if active and policy == "Replace":
            for item in active:
                job = context.client.get(JOBS, item["name"], namespace_of(body))
                if job is not None:
                    await self._delete(body, job)
            active = []
        await self._create(body, time, active)

    async def _create(self, body: JSONObject, time: datetime, active: Sequence[JSONObject]) -> None:
        context = self._context
        try:
            job = await context.client.create(JOBS, job_of(body, time))
        except StatusError as error:
            if is_namespace_ending(error):
                return
            found = context.client.get(JOBS, name_of(job_of(body, time)), namespace_of(body))
            if error.reason != "AlreadyExists" or found is None or not is_owned_by(found, body):
                context.events.warning(body, "FailedCreate", f"Error creating job: {error}")
                raise
            job = found
        else:
            context.events.normal(body, "SuccessfulCreate", f"Created job {name_of(job)}")
        body = context.client.get(CRON_JOBS, name_of(body), namespace_of(body)) or body
        status = {**(body.get("status") or {}), "lastScheduleTime": stamp(time)}
        others = [item for item in active if item.get("uid") != uid_of(job)]
        status["active"] = [*others, _job_reference(job)]
        await context.put_status(CRON_JOBS, body, status)


def schedule_of(body: JSONObject) -> Schedule:
    """Return the schedule of a CronJob in its time zone; raises ValueSyntaxError."""
    text = str(at(body, "spec", "schedule", default=""))
    zone = at(body, "spec", "timeZone")
    return parse_standard(f"TZ={zone} {text}" if zone and not text.startswith("@every") else text)


def due_time(body: JSONObject, schedule: Schedule, now: datetime) -> Due:
    """Return the last time of a schedule that is between its last use and now, and the next after now.

    >>> cron = {"metadata": {"creationTimestamp": "2030-01-01T00:00:30Z"}}
    >>> found = due_time(cron, parse_standard("*/5 * * * *"), datetime(2030, 1, 1, 0, 12, tzinfo=UTC))
    >>> stamp(found.last), stamp(found.next), found.missed
    ('2030-01-01T00:10:00Z', '2030-01-01T00:15:00Z', 2)
    """
    created = str(at(body, "metadata", "creationTimestamp", default=""))
    earliest = time_of(str(at(body, "status", "lastScheduleTime", default=created))) or now
    deadline = at(body, "spec", "startingDeadlineSeconds")
    if deadline is not None:
        earliest = max(earliest, datetime.fromtimestamp(now.timestamp() - deadline, UTC))
    last, missed = None, 0
    found = _after(schedule, earliest)
    while found is not None and found <= now:
        last, missed = found, missed + 1
        if missed > MANY:
            # the exact number does not matter any more; continue near the end
            found = _after(schedule, datetime.fromtimestamp(max(now.timestamp() - 86_400, found.timestamp()), UTC))
            while found is not None and found <= now:
                last, found = found, _after(schedule, found)
            break
        found = _after(schedule, found)
    return Due(last, _after(schedule, now), missed)


def job_of(body: JSONObject, time: datetime) -> JSONObject:
    """Return the Job for one time of the schedule; its name encodes that time."""
    template: JSONObject = at(body, "spec", "jobTemplate", default={})
    written = at(template, "metadata", default={})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            **{key: dict(written[key]) for key in ("labels",) if written.get(key)},
            "annotations": {**(written.get("annotations") or {}), SCHEDULED: stamp(time)},
            "name": f"{name_of(body)}-{int(time.timestamp()) // 60}",
            "namespace": namespace_of(body),
            "ownerReferences": [owner_reference(body)],
        },
        "spec": template.get("spec", {}),
    }


def _after(schedule: Schedule, time: datetime) -> datetime | None:
    found = schedule.next(unix_time(int(time.timestamp())))
    return None if found is None else datetime.fromtimestamp(found.nanoseconds // 10**9, UTC)


def _job_reference(job: JSONObject) -> JSONObject:
    reference = {"kind": "Job", "namespace": namespace_of(job), "name": name_of(job), "uid": uid_of(job)}
    return {**reference, "apiVersion": "batch/v1", "resourceVersion": at(job, "metadata", "resourceVersion")}
