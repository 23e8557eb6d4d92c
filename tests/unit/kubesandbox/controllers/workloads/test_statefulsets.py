"""StatefulSets: order, names, claims, rolling updates from the end."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod_template, workload

SETS, CLAIMS = "statefulsets.apps", "persistentvolumeclaims"


def stateful(**spec: object) -> JSONObject:
    return workload("StatefulSet", "db", serviceName="db", **spec)


def claim_template() -> JSONObject:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "data"}, "spec": spec}


def made(cluster: Cluster, revision: int, kind: str) -> list[str]:
    """Return the names of pods that were made or deleted after a version, in order."""
    changes = cluster.server.store.changes_since("pods", revision)
    return [change.state.key.name for change in changes if change.kind == kind]


async def change_image(cluster: Cluster, image: str) -> None:
    await cluster.client.patch(SETS, "db", "default", {"spec": {"template": pod_template({"app": "db"}, image)}})
    await cluster.settle()


def images(cluster: Cluster) -> list[str]:
    return [body["spec"]["containers"][0]["image"] for body in cluster.client.list("pods", "default")]


@in_cluster
async def test_pods_are_made_in_order_each_after_the_one_before_is_ready(cluster: Cluster) -> None:
    """And they carry their names, numbers and revision."""
    revision = cluster.server.store.revision
    await cluster.create(SETS, stateful(replicas=3))
    assert ["db-0", "db-1", "db-2"] == made(cluster, revision, "ADDED")
    body, status = cluster.get("pods", "db-1"), cluster.get(SETS, "db")["status"]
    labels = {
        "app": "db",
        "controller-revision-hash": status["currentRevision"],
        "statefulset.kubernetes.io/pod-name": "db-1",
        "apps.kubernetes.io/pod-index": "1",
    }
    assert (labels, "db-1", "db") == (body["metadata"]["labels"], body["spec"]["hostname"], body["spec"]["subdomain"])
    counts = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    assert [3] * 5 == [status[field] for field in counts]
    assert status["currentRevision"] == status["updateRevision"]
    assert [status["currentRevision"]] == cluster.names("controllerrevisions.apps")


@in_cluster
async def test_scaling_down_takes_the_last_one_first(cluster: Cluster) -> None:
    """Their claims stay, bound."""
    await cluster.create(SETS, stateful(replicas=3, volumeClaimTemplates=[claim_template()]))
    revision = cluster.server.store.revision
    await cluster.client.patch(SETS, "db", "default", {"spec": {"replicas": 1}})
    await cluster.settle()
    assert ["db-2", "db-1"] == made(cluster, revision, "DELETED")
    assert ["data-db-0", "data-db-1", "data-db-2"] == cluster.names(CLAIMS)
    assert {"Bound"} == {body["status"]["phase"] for body in cluster.client.list(CLAIMS)}
    volume = next(item for item in cluster.get("pods", "db-0")["spec"]["volumes"] if item["name"] == "data")
    assert "data-db-0" == volume["persistentVolumeClaim"]["claimName"]


@in_cluster
async def test_claims_are_deleted_where_the_policy_demands_it(cluster: Cluster) -> None:
    """The policy covers claims of pods removed by scaling, and all claims when the set is deleted."""
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    body = stateful(replicas=2, volumeClaimTemplates=[claim_template()], persistentVolumeClaimRetentionPolicy=policy)
    await cluster.create(SETS, body)
    await cluster.client.patch(SETS, "db", "default", {"spec": {"replicas": 1}})
    await cluster.settle()
    assert ["data-db-0"] == cluster.names(CLAIMS)
    await cluster.client.delete(SETS, "db", "default")
    await cluster.settle()
    assert ([], []) == (cluster.names(CLAIMS), cluster.names("persistentvolumes", ""))


@in_cluster
async def test_a_rolling_update_starts_at_the_end(cluster: Cluster) -> None:
    """One pod at a time; the revisions in the status show the progress."""
    await cluster.create(SETS, stateful(replicas=3))
    old = cluster.get(SETS, "db")["status"]["currentRevision"]
    revision = cluster.server.store.revision
    await change_image(cluster, "nginx:2")
    assert ["db-2", "db-1", "db-0"] == made(cluster, revision, "DELETED")
    status = cluster.get(SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"] != old
    assert ["nginx:2"] * 3 == images(cluster)


@in_cluster
async def test_a_partition_keeps_the_first_pods_as_they_are(cluster: Cluster) -> None:
    """They keep their revision even when they are made again."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    await cluster.create(SETS, stateful(replicas=3, updateStrategy=strategy))
    await change_image(cluster, "nginx:2")
    assert ["nginx:1", "nginx:1", "nginx:2"] == images(cluster)
    await cluster.client.delete("pods", "db-0", "default")
    await cluster.settle()
    assert ["nginx:1", "nginx:1", "nginx:2"] == images(cluster)
    status = cluster.get(SETS, "db")["status"]
    assert (2, 1) == (status["currentReplicas"], status["updatedReplicas"])


@in_cluster
async def test_pods_that_are_replaced_by_hand_wait_for_it(cluster: Cluster) -> None:
    """The strategy is OnDelete."""
    await cluster.create(SETS, stateful(replicas=2, updateStrategy={"type": "OnDelete"}))
    await change_image(cluster, "nginx:2")
    assert ["nginx:1", "nginx:1"] == images(cluster)
    await cluster.client.delete("pods", "db-1", "default")
    await cluster.settle()
    assert ["nginx:1", "nginx:2"] == images(cluster)


@in_cluster(kubelet=False)
async def test_parallel_pods_do_not_wait_for_one_another(cluster: Cluster) -> None:
    """Without a kubelet none becomes ready; an ordered set stops at its first pod."""
    await cluster.create(SETS, stateful(replicas=3, podManagementPolicy="Parallel", ordinals={"start": 5}))
    assert ["db-5", "db-6", "db-7"] == cluster.names("pods")
    await cluster.create(SETS, workload("StatefulSet", "queue", serviceName="queue", replicas=3))
    assert ["db-5", "db-6", "db-7", "queue-0"] == cluster.names("pods")
