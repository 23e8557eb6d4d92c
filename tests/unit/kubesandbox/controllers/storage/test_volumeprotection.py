"""Claims and volumes stay while they are used."""

from __future__ import annotations

from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod
from tests.unit.kubesandbox.controllers.storage.test_volumes import CLAIMS, VOLUMES, claim, volume

USER = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@in_cluster
async def test_a_claim_stays_while_a_pod_uses_it(cluster: Cluster) -> None:
    """Also when the pod has ended; it goes with the pod, and its volume with it."""
    await cluster.create(CLAIMS, claim())
    assert ["kubernetes.io/pvc-protection"] == cluster.get(CLAIMS, "data")["metadata"]["finalizers"]
    await cluster.create("pods", pod("user", **USER))
    await cluster.client.delete(CLAIMS, "data", "default")
    await cluster.settle()
    assert "deletionTimestamp" in cluster.get(CLAIMS, "data")["metadata"]
    await cluster.client.delete("pods", "user", "default")
    await cluster.settle(40)
    assert ([], [], []) == (cluster.names("pods"), cluster.names(CLAIMS), cluster.names(VOLUMES, ""))


@in_cluster(kubelet=False)
async def test_pods_without_a_node_hold_no_claim(cluster: Cluster) -> None:
    """No node starts a pod whose claim is being deleted."""
    await cluster.create(CLAIMS, claim())
    await cluster.create("pods", pod("user", **USER))
    await cluster.client.delete(CLAIMS, "data", "default")
    await cluster.settle()
    assert [] == cluster.names(CLAIMS)


@in_cluster
async def test_a_bound_volume_stays(cluster: Cluster) -> None:
    """Until its claim is gone."""
    await cluster.create(VOLUMES, volume())
    await cluster.create(CLAIMS, claim(storageClassName=""))
    assert ["kubernetes.io/pv-protection"] == cluster.get(VOLUMES, "disk", "")["metadata"]["finalizers"]
    await cluster.client.delete(VOLUMES, "disk", "")
    await cluster.settle()
    assert "deletionTimestamp" in cluster.get(VOLUMES, "disk", "")["metadata"]
    await cluster.client.delete(CLAIMS, "data", "default")
    await cluster.settle()
    assert [] == cluster.names(VOLUMES, "")
