"""Jobs: completions, failures, deadlines, suspension, and the time after."""

from __future__ import annotations

from kubesandbox.controllers.nodes.podends import EXIT_CODE
from kubesandbox.objects.pods import evict
from kubesandbox.writes import Write
from pyverno.engine.request import User
from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template

JOBS = "jobs.batch"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


def job(
    *, code: int | str = 0, restarts: bool = False, codes: dict[str, str] | None = None, **spec: object
) -> JSONObject:
    template = pod_template({}, restartPolicy="OnFailure" if restarts else "Never")
    template["metadata"]["annotations"] = {EXIT_CODE: str(code)} if code else {}
    template["metadata"]["annotations"] |= {f"{EXIT_CODE}.{name}": text for name, text in (codes or {}).items()}
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
    """Its pod runs and succeeds at once, is counted once, and stays without our finalizer."""
    await cluster.create(JOBS, job())
    status = cluster.get(JOBS, "work")["status"]
    assert (1, None, {}) == (status["succeeded"], status.get("active"), status["uncountedTerminatedPods"])
    assert {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"} == conditions(cluster)
    assert "2030-01-01T12:00:00Z" == status["completionTime"] == status["startTime"]
    body = cluster.client.list("pods", "default")[0]
    assert ("Succeeded", None) == (body["status"]["phase"], body["metadata"].get("finalizers"))
    assert "work" == body["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    assert ["Job completed"] == cluster.events("Completed")


@in_cluster
async def test_as_many_pods_succeed_as_are_wanted(cluster: Cluster) -> None:
    """Never more at once than allowed."""
    before = cluster.server.store.revision
    await cluster.create(JOBS, job(completions=5, parallelism=2))
    assert 5 == cluster.get(JOBS, "work")["status"]["succeeded"] == len(cluster.names("pods"))
    for revision in range(before, cluster.server.store.revision + 1):
        pods = [state.body for state in cluster.server.store.all_at("pods", revision)]
        assert sum(body["status"]["phase"] in ("Pending", "Running") for body in pods) <= 2


@in_cluster
async def test_numbered_completions_are_each_done_once(cluster: Cluster) -> None:
    """The status lists them, pods know theirs."""
    await cluster.create(JOBS, job(completions=4, parallelism=3, completionMode="Indexed"))
    assert "0-3" == cluster.get(JOBS, "work")["status"]["completedIndexes"]
    pods = cluster.client.list("pods", "default")
    numbers = [body["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for body in pods]
    assert ["0", "1", "2", "3"] == sorted(numbers)
    assert {f"work-{number}" for number in numbers} == {body["spec"]["hostname"] for body in pods}


@in_cluster
async def test_failures_are_tried_again_until_there_are_too_many(cluster: Cluster) -> None:
    """After ten seconds, then twenty; then the Job has failed."""
    await cluster.create(JOBS, job(code=3, backoffLimit=2))
    assert (1, {}) == (cluster.get(JOBS, "work")["status"]["failed"], conditions(cluster))
    terminated = cluster.client.list("pods", "default")[0]["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (3, "Error") == (terminated["exitCode"], terminated["reason"])
    await cluster.settle(11)
    assert 2 == cluster.get(JOBS, "work")["status"]["failed"]
    await cluster.settle(9)
    assert 2 == cluster.get(JOBS, "work")["status"]["failed"]
    await cluster.settle(12)
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
async def test_a_suspended_job_has_no_pods_and_goes_on_later(cluster: Cluster) -> None:
    """What suspension takes away is no failure."""
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
    """With its pods."""
    await cluster.create(JOBS, job(ttlSecondsAfterFinished=60))
    await cluster.settle(59)
    assert ["work"] == cluster.names(JOBS)
    await cluster.settle(2)
    assert ([], []) == (cluster.names(JOBS), cluster.names("pods"))


@in_cluster(kubelet=False)
async def test_pods_of_a_deleted_job_are_let_go(cluster: Cluster) -> None:
    """Their finalizer is ours, so nobody else would take it."""
    await cluster.create(JOBS, job(parallelism=2))
    await cluster.client.delete(JOBS, "work", "default", propagation="Background")
    await cluster.settle()
    assert ([], []) == (cluster.names(JOBS), cluster.names("pods"))


@in_cluster
async def test_containers_are_started_again_until_there_are_too_many_failures(cluster: Cluster) -> None:
    """In the same pod, which is taken away in the end."""
    await cluster.create(JOBS, job(code="1,1,0", restarts=True))
    body = cluster.client.list("pods", "default")[0]
    assert (1, "CrashLoopBackOff") == (
        body["status"]["containerStatuses"][0]["restartCount"],
        body["status"]["containerStatuses"][0]["state"]["waiting"]["reason"],
    )
    await cluster.settle(11)
    body = cluster.client.list("pods", "default")[0]
    assert ("Succeeded", 2) == (body["status"]["phase"], body["status"]["containerStatuses"][0]["restartCount"])
    assert {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"} == conditions(cluster)
    await cluster.client.delete(JOBS, "work", "default", propagation="Background")
    await cluster.create(JOBS, job(code=1, restarts=True, backoffLimit=2))
    await cluster.settle(60)
    assert {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"} == conditions(cluster)
    assert ([], 1) == (cluster.names("pods"), cluster.get(JOBS, "work")["status"]["failed"])


@in_cluster
async def test_a_code_fails_the_whole_job(cluster: Cluster) -> None:
    """The other pods are taken away."""
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    await cluster.create(JOBS, job(code=42, podFailurePolicy={"rules": [rule]}, backoffLimit=5))
    found = cluster.get(JOBS, "work")["status"]
    name = cluster.names("pods")[0]
    text = f"Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert {"FailureTarget": "PodFailurePolicy", "Failed": "PodFailurePolicy"} == conditions(cluster)
    assert ({text}, 1) == ({item["message"] for item in found["conditions"]}, found["failed"])


@in_cluster
async def test_ignored_failures_are_tried_again_without_counting(cluster: Cluster) -> None:
    """More often than the limit of failures allows."""
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}}
    await cluster.create(JOBS, job(code=7, podFailurePolicy={"rules": [rule]}, backoffLimit=0))
    await cluster.settle(11)
    await cluster.settle(21)
    status = cluster.get(JOBS, "work")["status"]
    assert (3, None, {}) == (len(cluster.names("pods")), status.get("failed"), conditions(cluster))


@in_cluster
async def test_completions_fail_each_for_itself(cluster: Cluster) -> None:
    """The others go on; each pod knows how often its own has failed, and waits for that alone."""
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    await cluster.create(JOBS, job(codes={"1": "3", "2": "3,0"}, **spec))
    status = cluster.get(JOBS, "work")["status"]
    assert ("0", "", {}) == (status["completedIndexes"], status["failedIndexes"], conditions(cluster))
    await cluster.settle(11)
    status = cluster.get(JOBS, "work")["status"]
    assert ("0,2", "1", 3, 2) == (
        status["completedIndexes"],
        status["failedIndexes"],
        status["failed"],
        status["succeeded"],
    )
    assert {"FailureTarget": "FailedIndexes", "Failed": "FailedIndexes"} == conditions(cluster)
    counts = [
        (body["metadata"]["labels"][INDEX], body["metadata"]["annotations"][FAILURES])
        for body in cluster.client.list("pods", "default")
    ]
    assert [("0", "0"), ("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")] == sorted(counts)
    assert all("finalizers" not in body["metadata"] for body in cluster.client.list("pods", "default"))


@in_cluster
async def test_too_many_failed_completions_end_a_job(cluster: Cluster) -> None:
    """A rule may fail a completion at once."""
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}}
    spec = {"completions": 4, "parallelism": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 9}
    await cluster.create(JOBS, job(code=3, maxFailedIndexes=1, podFailurePolicy={"rules": [rule]}, **spec))
    status = cluster.get(JOBS, "work")["status"]
    assert ("0,1", 2) == (status["failedIndexes"], status["failed"])
    assert {"FailureTarget": "MaxFailedIndexesExceeded", "Failed": "MaxFailedIndexesExceeded"} == conditions(cluster)


@in_cluster
async def test_enough_successes_end_a_job(cluster: Cluster) -> None:
    """What still tries is taken away and is no failure."""
    rules = {"rules": [{"succeededIndexes": "0-1"}]}
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": rules}
    await cluster.create(JOBS, job(codes={"2": "1"}, restarts=True, **spec))
    status = cluster.get(JOBS, "work")["status"]
    assert {"SuccessCriteriaMet": "SuccessPolicy", "Complete": "SuccessPolicy"} == conditions(cluster)
    assert ("0,1", 2, None) == (status["completedIndexes"], status["succeeded"], status.get("failed"))
    assert {"Matched rules at index 0"} == {item["message"] for item in status["conditions"]}


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


@in_cluster(kubelet=False)
async def test_what_is_taken_away_at_the_end_has_not_failed_for_good(cluster: Cluster) -> None:
    """Only the completions that ended the Job are lost, though all pods count."""
    spec = {"completions": 4, "parallelism": 4, "completionMode": "Indexed", "backoffLimitPerIndex": 0}
    await cluster.create(JOBS, job(maxFailedIndexes=1, **spec))
    for body in cluster.client.list("pods", "default"):
        if body["metadata"]["labels"][INDEX] in "01":
            await cluster.client.update("pods", {**body, "status": {"phase": "Failed"}}, subresource="status")
    await cluster.settle()
    status = cluster.get(JOBS, "work")["status"]
    assert ("0,1", 4) == (status["failedIndexes"], status["failed"])


@in_cluster(kubelet=False)
async def test_evicted_pods_may_be_left_out_of_the_count(cluster: Cluster) -> None:
    """A disruption is not the fault of the Job."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    await cluster.create(JOBS, job(podFailurePolicy={"rules": [rule]}, backoffLimit=0))
    name = cluster.names("pods")[0]
    pods = cluster.server.table.versions_of("pods")[0]
    write = Write(pods, "default", name, User("admin", ("system:masters",)), subresource="eviction")
    await evict(cluster.server, write, {"metadata": {"name": name, "namespace": "default"}})
    await cluster.settle(31)
    status = cluster.get(JOBS, "work")["status"]
    assert (None, {}, True) == (status.get("failed"), conditions(cluster), cluster.names("pods") != [name])
