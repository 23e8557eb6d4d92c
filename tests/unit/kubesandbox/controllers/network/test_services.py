"""Services: Endpoints and EndpointSlices follow their pods."""

from __future__ import annotations

from pyverno.kube.json import JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster, pod

SLICES = "endpointslices.discovery.k8s.io"


def service(**spec: object) -> JSONObject:
    metadata = {"name": "web", "namespace": "default", "labels": {"team": "a"}}
    ports = [{"name": "http", "port": 80, "targetPort": "http"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
    }


def web_pod(name: str, port: int = 8080) -> JSONObject:
    ports = [{"name": "http", "containerPort": port}]
    body = pod(name, containers=[{"name": "main", "image": "nginx", "ports": ports}])
    body["metadata"]["labels"] = {"app": "web"}
    return body


def addresses(cluster: Cluster) -> list[tuple[list[str], list[str], list[int]]]:
    """Return ready and other addresses with their ports, by subset."""
    return [
        (
            [item["ip"] for item in subset.get("addresses", ())],
            [item["ip"] for item in subset.get("notReadyAddresses", ())],
            [item["port"] for item in subset["ports"]],
        )
        for subset in cluster.get("endpoints", "web").get("subsets", ())
    ]


def slice_entries(cluster: Cluster) -> list[tuple[str, bool]]:
    found = [item for item in cluster.client.list(SLICES, "default") if item["metadata"]["name"].startswith("web-")]
    assert 1 == len(found)
    return [(item["addresses"][0], item["conditions"]["ready"]) for item in found[0].get("endpoints") or ()]


@in_cluster
async def test_addresses_come_and_go_with_pods(cluster: Cluster) -> None:
    """Named ports are those of the pod."""
    await cluster.create("services", service())
    assert ([], []) == (addresses(cluster), slice_entries(cluster))
    await cluster.create("pods", web_pod("a"))
    await cluster.create("pods", pod("other"))
    await cluster.create("pods", web_pod("b"))
    assert [(["10.244.0.1", "10.244.0.3"], [], [8080])] == addresses(cluster)
    assert [("10.244.0.1", True), ("10.244.0.3", True)] == slice_entries(cluster)
    await cluster.client.delete("pods", "a", "default")
    await cluster.settle()
    assert [(["10.244.0.3"], [], [8080])] == addresses(cluster)
    assert [("10.244.0.3", True)] == slice_entries(cluster)


@in_cluster
async def test_pods_that_are_not_ready_stand_apart(cluster: Cluster) -> None:
    """They are separate unless the service publishes addresses that are not ready."""
    await cluster.create("services", service())
    body = web_pod("a")
    body["spec"]["readinessGates"] = [{"conditionType": "example.com/never"}]
    await cluster.create("pods", body)
    assert [([], ["10.244.0.1"], [8080])] == addresses(cluster)
    assert [("10.244.0.1", False)] == slice_entries(cluster)
    await cluster.client.patch("services", "web", "default", {"spec": {"publishNotReadyAddresses": True}})
    await cluster.settle()
    assert [(["10.244.0.1"], [], [8080])] == addresses(cluster)
    assert [("10.244.0.1", True)] == slice_entries(cluster)


@in_cluster
async def test_pods_with_other_port_numbers_make_another_subset(cluster: Cluster) -> None:
    """A named port may have different numbers in different pods."""
    await cluster.create("services", service())
    await cluster.create("pods", web_pod("a", 8080))
    await cluster.create("pods", web_pod("b", 9090))
    assert [(["10.244.0.1"], [], [8080]), (["10.244.0.2"], [], [9090])] == addresses(cluster)


@in_cluster
async def test_a_service_without_selector_keeps_its_own_addresses(cluster: Cluster) -> None:
    """The controller leaves these Endpoints alone, since their owner writes them."""
    await cluster.create("services", service(selector={}))
    own = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}],
    }
    await cluster.create("endpoints", own)
    assert [(["192.0.2.1"], [], [80])] == addresses(cluster)
    await cluster.client.delete("services", "web", "default")
    await cluster.settle()
    assert ["web"] == cluster.names("endpoints")


@in_cluster
async def test_addresses_go_with_their_service(cluster: Cluster) -> None:
    """The slice is deleted through its owner reference, the Endpoints by name."""
    await cluster.create("services", service())
    await cluster.create("pods", web_pod("a"))
    await cluster.client.delete("services", "web", "default")
    await cluster.settle()
    assert ([], []) == (cluster.names("endpoints"), cluster.names(SLICES))


@in_cluster
async def test_changes_of_other_writers_are_reverted(cluster: Cluster) -> None:
    """Changed objects are corrected, and deleted ones are made again."""
    await cluster.create("services", service())
    await cluster.create("pods", web_pod("a"))
    await cluster.client.patch("endpoints", "web", "default", {"subsets": None})
    await cluster.client.delete(SLICES, cluster.names(SLICES)[0], "default")
    await cluster.settle()
    assert [(["10.244.0.1"], [], [8080])] == addresses(cluster)
    assert [("10.244.0.1", True)] == slice_entries(cluster)
