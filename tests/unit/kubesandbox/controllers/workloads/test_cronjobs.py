"""CronJobs: when Jobs are made, how many live side by side, and how many are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubesandbox.controllers.clock import stamp
from kubesandbox.controllers.workloads.cronjobs import due_time, job_of, schedule_of
from pyverno.errors import ValueSyntaxError
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template

CRON_JOBS, JOBS = "cronjobs.batch", "jobs.batch"


def cron_job(schedule: str = "*/5 * * * *", **spec: object) -> JSONObject:
    template = pod_template({}, restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default", "uid": "u", "creationTimestamp": "2030-01-01T12:00:00Z"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": template}}, **spec},
    }


@in_cluster
async def test_a_job_is_made_at_every_time_of_the_schedule(cluster: Cluster) -> None:
    """Its name holds the scheduled time."""
    await cluster.create(CRON_JOBS, cron_job())
    assert [] == cluster.names(JOBS)
    await cluster.settle(301)
    await cluster.settle(2)
    minute = int(datetime(2030, 1, 1, 12, 5, tzinfo=UTC).timestamp()) // 60
    assert [f"tick-{minute}"] == cluster.names(JOBS)
    status = cluster.get(CRON_JOBS, "tick")["status"]
    assert "2030-01-01T12:05:00Z" == status["lastScheduleTime"]
    assert "active" not in status
    assert status["lastSuccessfulTime"] >= "2030-01-01T12:05:00Z"
    await cluster.settle(300)
    assert 2 == len(cluster.names(JOBS))


@in_cluster
async def test_finished_jobs_are_kept_up_to_a_number(cluster: Cluster) -> None:
    """The oldest Jobs are deleted with their pods."""
    await cluster.create(CRON_JOBS, cron_job("* * * * *", successfulJobsHistoryLimit=2))
    await cluster.settle(301)
    await cluster.settle(2)
    assert (2, 2) == (len(cluster.names(JOBS)), len(cluster.names("pods")))
    assert "2030-01-01T12:05:00Z" == cluster.get(CRON_JOBS, "tick")["status"]["lastScheduleTime"]


@in_cluster(kubelet=False)
async def test_jobs_side_by_side_are_allowed_forbidden_or_replaced(cluster: Cluster) -> None:
    """Without a kubelet no Job ends."""
    for policy in ("Allow", "Forbid", "Replace"):
        body = cron_job("* * * * *", concurrencyPolicy=policy)
        body["metadata"]["name"] = policy.lower()
        await cluster.create(CRON_JOBS, body)
    await cluster.settle(181)
    names = cluster.names(JOBS)
    for policy, count in (("allow", 3), ("forbid", 1), ("replace", 1)):
        assert (policy, count) == (policy, sum(name.startswith(policy) for name in names))
        assert count == len(cluster.get(CRON_JOBS, policy)["status"]["active"])
    assert "concurrency policy is Forbid" in cluster.events("JobAlreadyActive")[0]


@in_cluster
async def test_a_suspended_one_makes_nothing(cluster: Cluster) -> None:
    """Afterwards only the last missed time counts."""
    await cluster.create(CRON_JOBS, cron_job("* * * * *", suspend=True))
    await cluster.settle(600)
    assert [] == cluster.names(JOBS)
    await cluster.client.patch(CRON_JOBS, "tick", "default", {"spec": {"suspend": False}})
    await cluster.settle()
    assert 1 == len(cluster.names(JOBS))
    assert "2030-01-01T12:10:00Z" == cluster.get(CRON_JOBS, "tick")["status"]["lastScheduleTime"]


@pytest.mark.parametrize(
    ("changes", "now", "expected"),
    [
        ({}, (12, 4), (None, "12:05", 0)),
        ({}, (12, 5), ("12:05", "12:10", 1)),
        ({}, (12, 31), ("12:30", "12:35", 6)),
        ({"startingDeadlineSeconds": 100}, (12, 31), ("12:30", "12:35", 1)),
        ({"startingDeadlineSeconds": 10}, (12, 31), (None, "12:35", 0)),
        ({"timeZone": "Asia/Kolkata", "schedule": "30 18 * * *"}, (13, 1), ("13:00", None, 1)),
    ],
)
def test_the_last_unused_time_is_due(
    changes: JSONObject, now: tuple[int, int], expected: tuple[str | None, str | None, int]
) -> None:
    """A deadline cuts off what is too far back; the schedule is read in its own time zone."""
    body = cron_job()
    body["spec"] |= changes
    found = due_time(body, schedule_of(body), datetime(2030, 1, 1, *now, tzinfo=UTC))
    last, following = (time and stamp(time)[11:16] for time in (found.last, found.next))
    assert (expected[0], expected[2]) == (last, found.missed)
    assert expected[1] in (None, following)


def test_very_many_missed_times_are_not_counted_one_by_one() -> None:
    """A year of minutes; the last one is still right."""
    body = cron_job("* * * * *")
    found = due_time(body, schedule_of(body), datetime(2031, 1, 1, 12, 0, 30, tzinfo=UTC))
    assert (101, "2031-01-01T12:00:00Z") == (found.missed, stamp(found.last) if found.last else "")


def test_a_schedule_that_can_not_be_read_is_an_error() -> None:
    """The event of the controller has the reason."""
    with pytest.raises(ValueSyntaxError):
        schedule_of(cron_job("every day"))


def test_a_job_carries_labels_and_its_time() -> None:
    """The CronJob owns the Job."""
    body = cron_job()
    body["spec"]["jobTemplate"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    metadata = job_of(body, datetime(2030, 1, 1, 12, 5, tzinfo=UTC))["metadata"]
    assert {"a": "b"} == metadata["labels"]
    expected = {"c": "d", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2030-01-01T12:05:00Z"}
    assert (expected, "tick") == (metadata["annotations"], metadata["ownerReferences"][0]["name"])
