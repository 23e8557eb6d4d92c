"""The node registers, is ready, and renews its lease."""

from __future__ import annotations

from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod


@in_cluster
async def test_the_node_is_ready_and_renews_its_heartbeat(cluster: Cluster) -> None:
    """Its lease is renewed every ten seconds and belongs to it."""
    node = cluster.get("nodes", "sandbox", "")
    ready = next(item for item in node["status"]["conditions"] if item["type"] == "Ready")
    assert ("True", "v1.35.0") == (ready["status"], node["status"]["nodeInfo"]["kubeletVersion"])
    lease = cluster.get("leases.coordination.k8s.io", "sandbox", "kube-node-lease")
    assert node["metadata"]["uid"] == lease["metadata"]["ownerReferences"][0]["uid"]
    await cluster.settle(25)
    later = cluster.get("leases.coordination.k8s.io", "sandbox", "kube-node-lease")
    assert ("2030-01-01T12:00:00.000000Z", "2030-01-01T12:00:20.000000Z") == (
        lease["spec"]["renewTime"],
        later["spec"]["renewTime"],
    )


@in_cluster
async def test_a_deleted_node_comes_back(cluster: Cluster) -> None:
    """After ten seconds, ready, as if its kubelet were restarted; pods that waited for it run."""
    old = cluster.get("nodes", "sandbox", "")
    await cluster.client.delete("nodes", "sandbox")
    await cluster.settle(5)
    assert [] == cluster.names("nodes", "")
    await cluster.create("pods", pod("web"))
    assert "Pending" == cluster.get("pods", "web")["status"]["phase"]
    await cluster.settle(10)
    node = cluster.get("nodes", "sandbox", "")
    ready = next(item for item in node["status"]["conditions"] if item["type"] == "Ready")
    assert ("True", True) == (ready["status"], node["metadata"]["uid"] != old["metadata"]["uid"])
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]


@in_cluster
async def test_a_node_that_is_declared_unready_is_ready_again(cluster: Cluster) -> None:
    """The kubelet reports the status that it sees."""
    node = cluster.get("nodes", "sandbox", "")
    unready = [{**item, "status": "False"} for item in node["status"]["conditions"] if item["type"] == "Ready"]
    await cluster.client.update(
        "nodes", {**node, "status": {**node["status"], "conditions": unready}}, subresource="status"
    )
    await cluster.settle(11)
    states = {item["type"]: item["status"] for item in cluster.get("nodes", "sandbox", "")["status"]["conditions"]}
    assert "True" == states["Ready"]
