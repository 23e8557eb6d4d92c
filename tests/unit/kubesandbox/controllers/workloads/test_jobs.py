"""Jobs: completions, failures, deadlines, suspension, and the time after."""

from __future__ import annotations

from kubesandbox.controllers.nodes.podends import EXIT_CODE
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template

JOBS = "jobs.batch"


def job(*, code: int = 0, **spec: object) -> JSONObject:
    template = pod_template({}, restartPolicy="Never")
    template["metadata"]["annotations"] = {EXIT_CODE: str(code)} if code else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": template, **spec},
    }


def conditions(cluster: Cluster) -> dict[str, str]:
    found = cluster.get(JOBS, "work")["status"].get("conditions", ())
    return {item["type"]: item["reason"] for item in found if item["status"] == "True"}


@in_cluster
async def test_a_job_completes(cluster: Cluster) -> None:
    """Its pod runs for a second and succeeds, is counted once, and stays without our finalizer."""
    await cluster.create(JOBS, job())
    assert (1, 1) == (cluster.get(JOBS, "work")["status"]["active"], cluster.get(JOBS, "work")["status"]["ready"])
    assert ["Running"] == [body["status"]["phase"] for body in cluster.client.list("pods", "default")]
    await cluster.settle(1)
    status = cluster.get(JOBS, "work")["status"]
    assert (1, None, {}) == (status["succeeded"], status.get("active"), status["uncountedTerminatedPods"])
    assert {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"} == conditions(cluster)
    assert ("2030-01-01T12:00:00Z", "2030-01-01T12:00:01Z") == (status["startTime"], status["completionTime"])
    body = cluster.client.list("pods", "default")[0]
    assert ("Succeeded", None) == (body["status"]["phase"], body["metadata"].get("finalizers"))
    assert "work" == body["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    assert ["Job completed"] == cluster.events("Completed")


@in_cluster
async def test_as_many_pods_succeed_as_are_wanted(cluster: Cluster) -> None:
    """Never more at once than allowed."""
    before = cluster.server.store.revision
    await cluster.create(JOBS, job(completions=5, parallelism=2))
    await cluster.settle(3)
    assert 5 == cluster.get(JOBS, "work")["status"]["succeeded"] == len(cluster.names("pods"))
    for revision in range(before, cluster.server.store.revision + 1):
        pods = [state.body for state in cluster.server.store.all_at("pods", revision)]
        assert sum(body["status"]["phase"] in ("Pending", "Running") for body in pods) <= 2


@in_cluster
async def test_failures_are_tried_again_until_there_are_too_many(cluster: Cluster) -> None:
    """After ten seconds, then twenty; then the Job has failed."""
    await cluster.create(JOBS, job(code=3, backoffLimit=2))
    await cluster.settle(1)
    assert (1, {}) == (cluster.get(JOBS, "work")["status"]["failed"], conditions(cluster))
    terminated = cluster.client.list("pods", "default")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (3, "Error") == (terminated["exitCode"], terminated["reason"])
    await cluster.settle(12)
    assert 2 == cluster.get(JOBS, "work")["status"]["failed"]
    await cluster.settle(9)
    assert 2 == cluster.get(JOBS, "work")["status"]["failed"]
    await cluster.settle(13)
    assert 3 == cluster.get(JOBS, "work")["status"]["failed"]
    assert {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"} == conditions(cluster)
    assert ["Job has reached the specified backoff limit"] == cluster.events("BackoffLimitExceeded")


@in_cluster(kubelet=False)
async def test_a_job_that_takes_too_long_fails(cluster: Cluster) -> None:
    """Its pods are deleted and count as failed."""
    await cluster.create(JOBS, job(activeDeadlineSeconds=30, parallelism=2))
    assert 2 == cluster.get(JOBS, "work")["status"]["active"]
    await cluster.settle(31)
    assert {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"} == conditions(cluster)
    assert ([], 2) == (cluster.names("pods"), cluster.get(JOBS, "work")["status"]["failed"])


@in_cluster(kubelet=False)
async def test_a_suspended_job_has_no_pods_and_continues_later(cluster: Cluster) -> None:
    """Pods that suspension deletes do not count as failed."""
    await cluster.create(JOBS, job(parallelism=2))
    await cluster.client.patch(JOBS, "work", "default", {"spec": {"suspend": True}})
    await cluster.settle()
    status = cluster.get(JOBS, "work")["status"]
    assert ([], {"Suspended": "JobSuspended"}, None) == (
        cluster.names("pods"),
        conditions(cluster),
        status.get("failed"),
    )
    assert "startTime" not in status
    await cluster.client.patch(JOBS, "work", "default", {"spec": {"suspend": False}})
    await cluster.settle()
    assert (2, {}) == (len(cluster.names("pods")), conditions(cluster))


@in_cluster
async def test_a_finished_job_goes_when_its_time_is_over(cluster: Cluster) -> None:
    """The Job is deleted with its pods."""
    await cluster.create(JOBS, job(ttlSecondsAfterFinished=60))
    await cluster.settle(1)
    await cluster.settle(59)
    assert ["work"] == cluster.names(JOBS)
    await cluster.settle(2)
    assert ([], []) == (cluster.names(JOBS), cluster.names("pods"))


@in_cluster(kubelet=False)
async def test_pods_of_a_deleted_job_are_let_go(cluster: Cluster) -> None:
    """Only this controller removes its finalizer."""
    await cluster.create(JOBS, job(parallelism=2))
    await cluster.client.delete(JOBS, "work", "default", propagation="Background")
    await cluster.settle()
    assert ([], []) == (cluster.names(JOBS), cluster.names("pods"))


@in_cluster(kubelet=False)
async def test_pods_that_are_taken_away_are_replaced(cluster: Cluster) -> None:
    """At once, and they count as failures."""
    await cluster.create(JOBS, job())
    name = cluster.names("pods")[0]
    await cluster.client.delete("pods", name, "default")
    await cluster.settle()
    assert 1 == cluster.get(JOBS, "work")["status"]["failed"]
    await cluster.settle(11)
    assert [True] == [found != name for found in cluster.names("pods")]
