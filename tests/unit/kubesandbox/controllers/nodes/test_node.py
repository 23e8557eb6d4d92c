"""The node registers, is ready, and renews its lease."""

from __future__ import annotations

from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster


@in_cluster
async def test_the_node_is_ready_and_says_so_again_and_again(cluster: Cluster) -> None:
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
async def test_a_deleted_node_stays_away(cluster: Cluster) -> None:
    """As a kubelet does not register twice."""
    await cluster.client.delete("nodes", "sandbox")
    await cluster.settle(30)
    assert [] == cluster.names("nodes", "")
