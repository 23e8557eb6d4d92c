"""The garbage collector: background, foreground, orphans, and owners that cannot be."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, workload


def config_map(name: str, *owners: JSONObject, namespace: str = "default", block: bool = True) -> JSONObject:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]
    metadata = {"name": name, "namespace": namespace, **({"ownerReferences": references} if owners else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(cluster: Cluster) -> list[str]:
    return [name for name in cluster.names("configmaps") if name != "kube-root-ca.crt"]


async def family(cluster: Cluster) -> JSONObject:
    """Make an owner, its child and its grandchild; return the owner."""
    owner = await cluster.create("configmaps", config_map("owner"))
    child = await cluster.create("configmaps", config_map("child", owner))
    await cluster.create("configmaps", config_map("grandchild", child))
    return owner


@in_cluster
async def test_dependents_go_after_their_owner(cluster: Cluster) -> None:
    """In the background, generation by generation."""
    await family(cluster)
    assert ["child", "grandchild", "owner"] == names(cluster)
    await cluster.client.delete("configmaps", "owner", "default", propagation="Background")
    assert ["child", "grandchild"] == names(cluster)
    await cluster.settle()
    assert [] == names(cluster)


@in_cluster
async def test_in_the_foreground_dependents_go_first(cluster: Cluster) -> None:
    """The owner is last to leave, as the history of the store shows."""
    await family(cluster)
    before = cluster.server.store.revision
    await cluster.client.delete("configmaps", "owner", "default", propagation="Foreground")
    assert "foregroundDeletion" in cluster.get("configmaps", "owner")["metadata"]["finalizers"]
    await cluster.settle()
    changes = cluster.server.store.changes_since("configmaps", before)
    gone = [change.state.key.name for change in changes if change.kind == "DELETED"]
    assert ["grandchild", "child", "owner"] == gone


@in_cluster
async def test_a_dependent_that_does_not_block_is_not_waited_for(cluster: Cluster) -> None:
    """The dependent is deleted all the same."""
    owner = await cluster.create("configmaps", config_map("owner"))
    held = config_map("held", owner, block=False)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create("configmaps", held)
    await cluster.client.delete("configmaps", "owner", "default", propagation="Foreground")
    await cluster.settle()
    assert ["held"] == names(cluster)
    assert "deletionTimestamp" in cluster.get("configmaps", "held")["metadata"]


@in_cluster
async def test_orphans_stay_and_forget_their_owner(cluster: Cluster) -> None:
    """Only direct dependents lose their owner; those of the next generation keep theirs."""
    await family(cluster)
    await cluster.client.delete("configmaps", "owner", "default", propagation="Orphan")
    await cluster.settle()
    assert ["child", "grandchild"] == names(cluster)
    assert "ownerReferences" not in cluster.get("configmaps", "child")["metadata"]
    assert 1 == len(cluster.get("configmaps", "grandchild")["metadata"]["ownerReferences"])


@in_cluster
async def test_an_owner_that_is_left_keeps_its_dependent(cluster: Cluster) -> None:
    """The reference to the one that is gone is taken away."""
    first = await cluster.create("configmaps", config_map("first"))
    second = await cluster.create("configmaps", config_map("second"))
    await cluster.create("configmaps", config_map("child", first, second))
    await cluster.client.delete("configmaps", "first", "default")
    await cluster.settle()
    owners = cluster.get("configmaps", "child")["metadata"]["ownerReferences"]
    assert ["second"] == [owner["name"] for owner in owners]


@in_cluster
async def test_a_reference_to_nothing_makes_garbage(cluster: Cluster) -> None:
    """The owner does not exist, or the object of that name has another uid."""
    absent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "absent", "uid": "u1"}}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "uid": "u2"}}
    await cluster.create("configmaps", config_map("a", absent))
    await cluster.create("configmaps", config_map("b", other))
    assert [] == names(cluster)


@in_cluster
async def test_an_owner_of_an_unknown_kind_is_no_reason_to_delete(cluster: Cluster) -> None:
    """The definition of the kind may be created again."""
    unknown = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "ball", "uid": "u1"}}
    await cluster.create("configmaps", config_map("a", unknown))
    assert ["a"] == names(cluster)


@in_cluster
async def test_an_owner_in_another_namespace_is_ignored_with_an_event(cluster: Cluster) -> None:
    """Ownership does not cross namespaces."""
    owner = await cluster.create("configmaps", config_map("owner", namespace="kube-system"))
    await cluster.create("configmaps", config_map("child", owner))
    assert [] == names(cluster)
    uid = owner["metadata"]["uid"]
    text = f'ownerRef [apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}] does not exist in namespace "default"'
    assert [text] == cluster.events("OwnerRefInvalidNamespace")


@in_cluster
async def test_an_object_of_the_cluster_with_an_owner_in_a_namespace_stays(cluster: Cluster) -> None:
    """Such a reference cannot be looked up, so it is no reason to delete."""
    owner = await cluster.create("configmaps", config_map("owner"))
    reference = config_map("x", owner)["metadata"]["ownerReferences"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "ownerReferences": reference},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/srv/x"},
        },
    }
    await cluster.create("persistentvolumes", volume)
    await cluster.client.delete("configmaps", "owner", "default")
    await cluster.settle()
    assert ["disk"] == cluster.names("persistentvolumes", "")


@in_cluster
async def test_a_whole_workload_goes_in_the_foreground(cluster: Cluster) -> None:
    """Deployment, ReplicaSet and pods, in the order of upstream."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=2))
    await cluster.client.delete("deployments.apps", "web", "default", propagation="Foreground")
    await cluster.settle()
    assert ([], [], []) == tuple(cluster.names(key) for key in ("deployments.apps", "replicasets.apps", "pods"))


@in_cluster
async def test_an_orphaned_replica_set_keeps_its_pods(cluster: Cluster) -> None:
    """`kubectl delete --cascade=orphan`, then a new owner adopts what fits its selector."""
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=2))
    pods = cluster.names("pods")
    await cluster.client.delete("deployments.apps", "web", "default", propagation="Orphan")
    await cluster.settle()
    assert (1, pods) == (len(cluster.names("replicasets.apps")), cluster.names("pods"))
    await cluster.create("deployments.apps", workload("Deployment", "web", replicas=2))
    assert (1, pods) == (len(cluster.names("replicasets.apps")), cluster.names("pods"))
    owner = cluster.client.list("replicasets.apps", "default")[0]["metadata"]["ownerReferences"][0]
    assert cluster.get("deployments.apps", "web")["metadata"]["uid"] == owner["uid"]
