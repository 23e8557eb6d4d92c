"""ReplicaSets and ReplicationControllers."""

from __future__ import annotations

from kubesandbox.controllers.workloads.replicasets import replica_set_status
from pyverno.kube.json import JSONObject
from pyverno.kube.status import forbidden
from tests.unit.kubesandbox.controllers.cluster import START, Cluster, in_cluster, pod, workload

SETS = "replicasets.apps"


@in_cluster
async def test_pods_that_fit_are_adopted_and_those_that_no_longer_do_are_released(cluster: Cluster) -> None:
    """A bare pod counts; one whose label is taken away is replaced and lives on."""
    await cluster.create("pods", pod("web"))
    await cluster.create(SETS, workload("ReplicaSet", "web", replicas=2))
    assert (2, True) == (len(cluster.names("pods")), "web" in cluster.names("pods"))
    assert "web" == cluster.get("pods", "web")["metadata"]["ownerReferences"][0]["name"]
    await cluster.client.patch("pods", "web", "default", {"metadata": {"labels": {"app": "apart"}}})
    await cluster.settle()
    assert 3 == len(cluster.names("pods"))
    assert "ownerReferences" not in cluster.get("pods", "web")["metadata"]


@in_cluster
async def test_a_pod_that_ends_or_goes_is_replaced(cluster: Cluster) -> None:
    """The controller never makes more pods than are missing."""
    await cluster.create(SETS, workload("ReplicaSet", "web", replicas=2))
    first, second = cluster.names("pods")
    await cluster.client.delete("pods", first, "default")
    body = cluster.get("pods", second)
    failed = {**body, "status": {**body["status"], "phase": "Failed"}}
    await cluster.client.update("pods", failed, subresource="status")
    await cluster.settle()
    running = [body for body in cluster.client.list("pods", "default") if body["status"]["phase"] == "Running"]
    assert (2, 3) == (len(running), len(cluster.names("pods")))
    assert 2 == cluster.get(SETS, "web")["status"]["availableReplicas"]


def test_a_failure_is_reported_until_it_is_over() -> None:
    """Its text is the first one, as retries would otherwise look like news."""
    body: JSONObject = {"metadata": {"generation": 2}, "spec": {"replicas": 1}}
    first = replica_set_status(body, [], START, forbidden("", "pods", "a", "no room"))
    failure = first["conditions"][0]
    assert ("ReplicaFailure", "FailedCreate", 'pods "a" is forbidden: no room') == tuple(
        failure[field] for field in ("type", "reason", "message")
    )
    again = {**body, "status": first}
    assert first == replica_set_status(again, [], START, forbidden("", "pods", "b", "no room"))
    assert {"replicas": 0, "observedGeneration": 2} == replica_set_status(again, [], START)
