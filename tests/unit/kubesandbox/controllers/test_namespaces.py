"""Namespaces that are deleted: what is inside goes first."""

from __future__ import annotations

from kubesandbox.controllers.namespaces import deletion_conditions
from pyverno.kube.json import JSONObject
from pyverno.kube.status import bad_request
from tests.unit.kubesandbox.controllers.cluster import START, Cluster, in_cluster, workload


def config_map(name: str, **metadata: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "team", **metadata}}


async def make_team(cluster: Cluster) -> None:
    await cluster.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})


@in_cluster
async def test_everything_inside_goes_with_the_namespace(cluster: Cluster) -> None:
    """Workloads, pods, accounts, events; other namespaces keep theirs."""
    await make_team(cluster)
    deployment = workload("Deployment", "web", replicas=2)
    await cluster.create("deployments.apps", {**deployment, "metadata": {"name": "web", "namespace": "team"}})
    await cluster.create("configmaps", config_map("a"))
    assert 2 == len(cluster.names("pods", "team"))
    await cluster.client.delete("namespaces", "team")
    await cluster.settle()
    assert "team" not in cluster.names("namespaces", "")
    left = [item.key for item in cluster.server.table if item.namespaced and cluster.client.list(item.key, "team")]
    assert [] == left
    assert ["default"] == cluster.names("serviceaccounts", "default")


@in_cluster
async def test_a_finalizer_inside_holds_the_namespace_and_its_conditions_show_it(cluster: Cluster) -> None:
    """When the finalizer is gone, so is the namespace."""
    await make_team(cluster)
    await cluster.create("configmaps", config_map("held", finalizers=["example.com/hold"]))
    await cluster.client.delete("namespaces", "team")
    await cluster.settle()
    namespace = cluster.get("namespaces", "team", "")
    found = {item["type"]: item["message"] for item in namespace["status"]["conditions"] if item["status"] == "True"}
    expected = {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        ),
    }
    assert ("Terminating", expected) == (namespace["status"]["phase"], found)
    await cluster.client.patch("configmaps", "held", "team", {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert "team" not in cluster.names("namespaces", "")


CRD: JSONObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "toys.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Toy", "listKind": "ToyList", "plural": "toys", "singular": "toy"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@in_cluster
async def test_custom_objects_go_too(cluster: Cluster) -> None:
    """Their type is known only since its definition came."""
    await make_team(cluster)
    await cluster.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
    toy = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "ball", "namespace": "team"}}
    await cluster.create("toys.example.com", toy)
    await cluster.client.delete("namespaces", "team")
    await cluster.settle()
    assert ([], False) == (cluster.client.list("toys.example.com"), "team" in cluster.names("namespaces", ""))


def test_conditions_name_what_could_not_be_deleted() -> None:
    """A refused deletion is a failure with its text."""
    found = deletion_conditions([], {}, [bad_request("no")], START)
    by_type = {item["type"]: (item["status"], item["reason"], item["message"]) for item in found}
    assert 5 == len(found)
    expected = ("True", "ContentDeletionFailed", "Failed to delete all resource types, 1 remaining: no")
    assert expected == by_type["NamespaceDeletionContentFailure"]
    assert ("False", "ContentRemoved", "All content successfully removed") == by_type["NamespaceContentRemaining"]
