"""The scheduler: binding, and the condition and event of pods that fit no node."""

from __future__ import annotations

from kubesandbox.controllers.nodes.scheduler import binding_of, waits
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod

NO_HELP = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling"


@in_cluster
async def test_a_pod_that_fits_nowhere_waits_until_it_does(cluster: Cluster) -> None:
    """One condition and one event give the reason; a label on the node ends the waiting."""
    await cluster.create("pods", pod("web", nodeSelector={"disk": "ssd"}))
    body = cluster.get("pods", "web")
    text = f"0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. {NO_HELP}."
    condition = body["status"]["conditions"][0]
    assert ("Pending", "Unschedulable", text) == (body["status"]["phase"], condition["reason"], condition["message"])
    assert [text] == cluster.events("FailedScheduling")
    await cluster.client.patch("nodes", "sandbox", "", {"metadata": {"labels": {"disk": "ssd"}}})
    await cluster.settle()
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]


@in_cluster
async def test_a_cordoned_node_takes_no_pods(cluster: Cluster) -> None:
    """`kubectl cordon` and `uncordon`."""
    await cluster.client.patch("nodes", "sandbox", "", {"spec": {"unschedulable": True}})
    await cluster.create("pods", pod("web"))
    assert "node(s) were unschedulable" in cluster.events("FailedScheduling")[0]
    await cluster.client.patch("nodes", "sandbox", "", {"spec": {"unschedulable": None}})
    await cluster.settle()
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]


@in_cluster
async def test_a_pod_waits_for_its_claim(cluster: Cluster) -> None:
    """First for the claim to be there, then nothing more, as claims are bound at once."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    await cluster.create("pods", pod("web", volumes=[volume]))
    assert ['persistentvolumeclaim "data" not found'] == cluster.events("FailedScheduling")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.create("persistentvolumeclaims", claim)
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]


def test_only_pods_for_this_scheduler_wait() -> None:
    """Not those of others, with gates, with a node, or on their way out."""
    assert waits(pod("a"))
    assert not waits(pod("a", schedulerName="mine"))
    assert not waits(pod("a", schedulingGates=[{"name": "x"}]))
    assert not waits(pod("a", nodeName="n"))
    assert not waits({**pod("a"), "metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})


def test_a_binding_is_for_one_pod_and_no_other() -> None:
    """Its uid is in it."""
    body = pod("a")
    body["metadata"]["uid"] = "u"
    expected = ({"name": "a", "namespace": "default", "uid": "u"}, {"kind": "Node", "name": "n"})
    assert expected == (binding_of(body, "n")["metadata"], binding_of(body, "n")["target"])
