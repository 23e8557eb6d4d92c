"""Progress of a Job."""

from __future__ import annotations

import pytest

from kubesandbox.controllers.workloads.jobs import counted
from kubesandbox.controllers.workloads.jobstatus import failure_delay, job_pod, verdict, wanted_active
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import START


def job(status: JSONObject | None = None, **spec: object) -> JSONObject:
    metadata = {"name": "work", "namespace": "n", "uid": "u"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status or {}}


def ended(phase: str, time: str) -> JSONObject:
    return {"status": {"phase": phase, "containerStatuses": [{"state": {"terminated": {"finishedAt": time}}}]}}


@pytest.mark.parametrize(
    ("spec", "succeeded", "active", "expected"),
    [
        ({"parallelism": 3, "completions": 5}, 0, 0, 3),
        ({"parallelism": 3, "completions": 5}, 4, 0, 1),
        ({"parallelism": 3, "completions": 5}, 5, 0, 0),
        ({"parallelism": 3}, 0, 0, 3),
        ({"parallelism": 3}, 1, 2, 2),  # a queue of work: after the first success nothing new begins
        ({"parallelism": 3, "suspend": True}, 0, 3, 0),
    ],
)
def test_so_many_pods_shall_run(spec: JSONObject, succeeded: int, active: int, expected: int) -> None:
    """No more than allowed at once, no more than are left to do."""
    assert expected == wanted_active(job(**spec), succeeded=succeeded, active=active)


ACTIVE: JSONObject = {"status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("body", "failed", "pods", "expected"),
    [
        (job({"succeeded": 1}, completions=2), 0, [], None),
        (job({"succeeded": 2}, completions=2), 0, [], "CompletionsReached"),
        (job({"succeeded": 1}), 0, [ACTIVE], None),
        (job({"succeeded": 1}), 0, [], "CompletionsReached"),
        (job(backoffLimit=1), 1, [], None),
        (job(backoffLimit=1), 2, [], "BackoffLimitExceeded"),
        (job({"startTime": "2030-01-01T11:59:00Z"}, activeDeadlineSeconds=61), 0, [ACTIVE], None),
        (job({"startTime": "2030-01-01T11:59:00Z"}, activeDeadlineSeconds=60), 0, [ACTIVE], "DeadlineExceeded"),
        (job({"succeeded": 9, "conditions": [{"type": "FailureTarget", "status": "True", "reason": "X"}]}), 0, [], "X"),
        (job({"conditions": [{"type": "SuccessCriteriaMet", "status": "True", "reason": "Y"}]}), 9, [], "Y"),
    ],
)
def test_a_job_ends_for_a_reason(body: JSONObject, failed: int, pods: list[JSONObject], expected: str | None) -> None:
    """A Job whose end is announced keeps its reason."""
    found = verdict(body, pods, failed=failed, now=START)
    assert expected == (found and found.reason)


def test_failures_in_a_row_are_waited_for() -> None:
    """A success in between starts over."""
    first, second = ended("Failed", "2030-01-01T11:59:50Z"), ended("Failed", "2030-01-01T11:59:55Z")
    success = ended("Succeeded", "2030-01-01T11:59:52Z")
    found = [failure_delay(pods, START) for pods in ([], [success], [second], [first, second])]
    assert [0, 0, 5, 15] == found
    assert 5 == failure_delay([first, success, second], START)


def test_a_pod_knows_its_job() -> None:
    """The labels of the pod name its job."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
    body = job_pod(job(template=template))
    assert {"a": "b", "job-name": "work", "controller-uid": "u"}.items() <= body["metadata"]["labels"].items()
    assert ("work-", ["batch.kubernetes.io/job-tracking"]) == (
        body["metadata"]["generateName"],
        body["metadata"]["finalizers"],
    )


def test_noted_pods_become_counts_once() -> None:
    """Also those that a run before noted and did not come to count."""
    status = {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["a"], "failed": ["b", "c"]}}
    expected = {"succeeded": 2, "failed": 2, "uncountedTerminatedPods": {}}
    assert expected == counted(job(status))
    assert expected == counted(job(expected))
