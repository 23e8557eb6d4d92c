"""DaemonSets: a pod on every node that takes it."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template, workload

SETS = "daemonsets.apps"


def node(name: str, **spec: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": name}}, "spec": spec}


def nodes_of_pods(cluster: Cluster) -> list[str]:
    return sorted(body["spec"].get("nodeName", "") for body in cluster.client.list("pods", "default"))


def status(cluster: Cluster) -> dict[str, int]:
    return dict(cluster.get(SETS, "agent")["status"])


@in_cluster
async def test_every_node_gets_one_pod(cluster: Cluster) -> None:
    """Nodes that come later too, cordoned ones as well; those that go take theirs with them."""
    await cluster.create(SETS, workload("DaemonSet", "agent"))
    await cluster.create("nodes", node("second", unschedulable=True))
    assert ["sandbox", "second"] == nodes_of_pods(cluster)
    found = status(cluster)
    expected = {"desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberReady": 2, "numberAvailable": 2}
    assert expected == {field: found[field] for field in expected}
    assert 0 == found["numberMisscheduled"]
    await cluster.client.delete("nodes", "second")
    await cluster.settle()
    assert ["sandbox"] == nodes_of_pods(cluster)


@in_cluster
async def test_a_selector_chooses_nodes(cluster: Cluster) -> None:
    """A node that no longer fits loses its pod."""
    await cluster.create("nodes", node("second"))
    template = pod_template({"app": "agent"}, nodeSelector={"zone": "second"})
    await cluster.create(SETS, workload("DaemonSet", "agent", template=template))
    assert ["second"] == nodes_of_pods(cluster)
    await cluster.client.patch("nodes", "second", "", {"metadata": {"labels": {"zone": "other"}}})
    await cluster.settle()
    assert ([], 0) == (nodes_of_pods(cluster), status(cluster)["desiredNumberScheduled"])


@in_cluster
async def test_a_rolling_update_replaces_pods_one_by_one(cluster: Cluster) -> None:
    """The history of the store never has both nodes without a ready pod."""
    await cluster.create("nodes", node("second"))
    await cluster.create(SETS, workload("DaemonSet", "agent"))
    before = cluster.server.store.revision
    template = pod_template({"app": "agent"}, "nginx:2")
    await cluster.client.patch(SETS, "agent", "default", {"spec": {"template": template}})
    await cluster.settle()
    for revision in range(before, cluster.server.store.revision + 1):
        assert cluster.server.store.all_at("pods", revision)
    images = {body["spec"]["containers"][0]["image"] for body in cluster.client.list("pods", "default")}
    assert ({"nginx:2"}, 2) == (images, status(cluster)["updatedNumberScheduled"])
    assert 2 == len(cluster.names("controllerrevisions.apps"))


@in_cluster
async def test_pods_that_are_replaced_by_hand_wait_for_it(cluster: Cluster) -> None:
    """The strategy is OnDelete."""
    await cluster.create(SETS, workload("DaemonSet", "agent", updateStrategy={"type": "OnDelete"}))
    first = cluster.names("pods")
    template = pod_template({"app": "agent"}, "nginx:2")
    await cluster.client.patch(SETS, "agent", "default", {"spec": {"template": template}})
    await cluster.settle()
    assert (first, None) == (cluster.names("pods"), status(cluster).get("updatedNumberScheduled"))
    await cluster.client.delete("pods", first[0], "default")
    await cluster.settle()
    assert 1 == status(cluster)["updatedNumberScheduled"]
