"""Claims that pods describe themselves."""

from __future__ import annotations

from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod

CLAIMS = "persistentvolumeclaims"


@in_cluster
async def test_a_claim_lives_as_long_as_its_pod(cluster: Cluster) -> None:
    """The pod waits for it, runs, and takes it along."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"labels": {"kind": "scratch"}}, "spec": spec}
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}
    await cluster.create("pods", pod("web", volumes=[volume]))
    assert ["web-tmp"] == cluster.names(CLAIMS)
    assert {"kind": "scratch"} == cluster.get(CLAIMS, "web-tmp")["metadata"]["labels"]
    assert "Running" == cluster.get("pods", "web")["status"]["phase"]
    await cluster.client.delete("pods", "web", "default")
    await cluster.settle()
    assert ([], []) == (cluster.names("pods"), cluster.names(CLAIMS))
