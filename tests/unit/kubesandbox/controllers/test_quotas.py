"""ResourceQuotas: the used amounts of their status."""

from __future__ import annotations

from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod


@in_cluster
async def test_use_is_counted_as_objects_come_and_go(cluster: Cluster) -> None:
    """Numbers of objects, and what pods ask for; pods that have ended do not count."""
    hard = {"pods": "10", "requests.cpu": "4", "count/configmaps": "5", "services": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    await cluster.create("resourcequotas", {**quota, "spec": {"hard": hard}})
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "250m"}}}
    for name in ("a", "b", "c"):
        await cluster.create("pods", pod(name, containers=[container]))
    status = cluster.get("resourcequotas", "q")["status"]
    used = {"pods": "3", "requests.cpu": "750m", "count/configmaps": "1", "services": "0"}
    assert (hard, used) == (status["hard"], status["used"])
    await cluster.client.delete("pods", "a", "default")
    body = cluster.get("pods", "b")
    ended = {**body, "status": {**body["status"], "phase": "Succeeded"}}
    await cluster.client.update("pods", ended, subresource="status")
    await cluster.settle()
    used = cluster.get("resourcequotas", "q")["status"]["used"]
    assert ("1", "250m") == (used["pods"], used["requests.cpu"])
