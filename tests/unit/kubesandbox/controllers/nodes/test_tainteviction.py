"""Nodes with `NoExecute` taints lose the pods that do not tolerate them."""

from __future__ import annotations

from kubesandbox.controllers.nodes.tainteviction import toleration_seconds
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod

TAINT = {"key": "maintenance", "value": "yes", "effect": "NoExecute"}


async def taint(cluster: Cluster, *taints: dict[str, str]) -> None:
    await cluster.client.patch("nodes", "sandbox", "", {"spec": {"taints": list(taints) or None}})
    await cluster.settle()


@in_cluster
async def test_pods_leave_a_node_that_they_do_not_tolerate(cluster: Cluster) -> None:
    """At once, when the time of their toleration is over, or never."""
    tolerated = {"key": "maintenance", "operator": "Exists"}
    await cluster.create("pods", pod("soon"))
    await cluster.create("pods", pod("later", tolerations=[{**tolerated, "tolerationSeconds": 60}]))
    await cluster.create("pods", pod("never", tolerations=[tolerated]))
    await taint(cluster, {**TAINT, "effect": "NoSchedule"})
    assert ["later", "never", "soon"] == sorted(cluster.names("pods"))
    await taint(cluster, TAINT)
    assert ["later", "never"] == sorted(cluster.names("pods"))
    assert ["Marking for deletion Pod default/soon"] == cluster.events("TaintManagerEviction")
    await cluster.settle(58)
    assert ["later", "never"] == sorted(cluster.names("pods"))
    await cluster.settle(3)
    assert ["never"] == cluster.names("pods")


@in_cluster
async def test_a_taint_that_goes_cancels_the_deletion(cluster: Cluster) -> None:
    """The pod stays, also after the time that it would have had."""
    tolerated = {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 60}
    await cluster.create("pods", pod("web", tolerations=[tolerated]))
    await taint(cluster, TAINT)
    await taint(cluster)
    await cluster.settle(90)
    assert (["web"], ["Cancelling deletion of Pod default/web"]) == (
        cluster.names("pods"),
        cluster.events("TaintManagerEviction"),
    )


@in_cluster
async def test_an_evicted_pod_states_the_reason(cluster: Cluster) -> None:
    """A condition that controllers of jobs read; seen while a finalizer keeps the pod."""
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create("pods", held)
    await taint(cluster, TAINT)
    found = [item for item in cluster.get("pods", "held")["status"]["conditions"] if item["type"] == "DisruptionTarget"]
    assert [("True", "DeletionByTaintManager")] == [(item["status"], item["reason"]) for item in found]


def test_the_shortest_toleration_counts() -> None:
    """A taint that is not tolerated leaves no time."""
    first = {"key": "a", "operator": "Exists", "tolerationSeconds": 20}
    second = {"key": "b", "operator": "Exists", "tolerationSeconds": -5}
    a, b = {"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}
    assert [None, 20.0, 0.0, 0.0] == [
        toleration_seconds([first, second], []),
        toleration_seconds([first], [a]),
        toleration_seconds([first, second], [a, b]),
        toleration_seconds([first], [a, b]),
    ]
