"""Endpoints that somebody wrote are told as slices."""

from __future__ import annotations

from kubesandbox.controllers.network.endpointmirroring import mirrored
from pyverno.kube.json import JSON, JSONObject
from tests.unit.kubesandbox.controllers.cluster import Cluster, in_cluster

ENDPOINTS, SLICES = "endpoints", "endpointslices.discovery.k8s.io"


def service(**spec: JSON) -> JSONObject:
    metadata = {"name": "db", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 5432}], **spec}}


def endpoints(*addresses: str, **metadata: JSON) -> JSONObject:
    subset = {"addresses": [{"ip": address} for address in addresses], "ports": [{"name": "sql", "port": 5432}]}
    metadata = {"name": "db", "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}


def slices(cluster: Cluster) -> list[list[str]]:
    """Return the addresses of the slices that mirror."""
    return [
        sorted(address for endpoint in body["endpoints"] for address in endpoint["addresses"])
        for body in cluster.client.list(SLICES, "default")
        if body["metadata"]["labels"]
        .get("endpointslice.kubernetes.io/managed-by", "")
        .startswith("endpointslicemirror")
    ]


@in_cluster
async def test_slices_follow_endpoints(cluster: Cluster) -> None:
    """Written, changed in place and taken away with them."""
    await cluster.create("services", service())
    await cluster.create(ENDPOINTS, endpoints("192.0.2.7", labels={"team": "a"}))
    assert [["192.0.2.7"]] == slices(cluster)
    body = cluster.client.list(SLICES, "default")[0]
    labels, owner = body["metadata"]["labels"], body["metadata"]["ownerReferences"][0]
    assert ("a", "db", "Endpoints") == (labels["team"], labels["kubernetes.io/service-name"], owner["kind"])
    assert [{"name": "sql", "port": 5432, "protocol": "TCP"}] == body["ports"]
    await cluster.client.update(ENDPOINTS, {**cluster.get(ENDPOINTS, "db"), **endpoints("192.0.2.8", "192.0.2.9")})
    await cluster.settle()
    assert [["192.0.2.8", "192.0.2.9"]] == slices(cluster)
    assert [body["metadata"]["name"]] == cluster.names(SLICES)
    await cluster.client.delete(ENDPOINTS, "db", "default")
    await cluster.settle()
    assert [] == cluster.names(SLICES)


@in_cluster
async def test_only_endpoints_of_services_without_selector_are_mirrored(cluster: Cluster) -> None:
    """And those that do not say that they are not."""
    await cluster.create(ENDPOINTS, endpoints("192.0.2.7"))
    assert [] == slices(cluster)
    await cluster.create("services", service(selector={"app": "db"}))
    assert [] == slices(cluster)
    await cluster.client.delete("services", "db", "default")
    await cluster.client.delete(ENDPOINTS, "db", "default")
    await cluster.create("services", service())
    await cluster.create(ENDPOINTS, endpoints("192.0.2.7", labels={"endpointslice.kubernetes.io/skip-mirror": "true"}))
    assert [] == slices(cluster)
    await cluster.client.patch(ENDPOINTS, "db", "default", {"metadata": {"labels": None}})
    await cluster.settle()
    assert [["192.0.2.7"]] == slices(cluster)


def test_ports_and_kinds_of_addresses_make_slices() -> None:
    """Addresses that are not ready are told so."""
    body = endpoints("192.0.2.7", "2001:db8::1", annotations={"endpoints.kubernetes.io/last-change-trigger-time": "x"})
    body["subsets"] += [{"notReadyAddresses": [{"ip": "192.0.2.9", "hostname": "h"}], "ports": [{"port": 9}]}]
    found = mirrored({**body, "metadata": {**body["metadata"], "uid": "u"}})
    assert [("IPv4", 5432), ("IPv6", 5432), ("IPv4", 9)] == [
        (slice_["addressType"], slice_["ports"][0]["port"]) for slice_ in found
    ]
    assert {"addresses": ["192.0.2.9"], "conditions": {"ready": False}, "hostname": "h"} == found[2]["endpoints"][0]
    assert "annotations" not in found[0]["metadata"]
