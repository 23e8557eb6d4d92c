"""The objects that a new server creates."""

from __future__ import annotations

from kubesandbox.bootstrap import first_objects, server_objects
from kubesandbox.local import LocalClient
from tests.unit.kubesandbox.serving import ADMIN, api_server, run


def test_all_first_objects_are_valid() -> None:
    """They pass the whole server, each once."""
    server = api_server()
    client = LocalClient(server, ADMIN)
    objects = [*first_objects(("mine", "default")), *server_objects("127.0.0.1", 7443)]
    for key, body in objects:
        metadata = body["metadata"]
        if client.get(key, metadata["name"], metadata.get("namespace", "")) is None:
            run(client.create(key, body))
    places = [(key, body["metadata"].get("namespace"), body["metadata"]["name"]) for key, body in objects]
    assert len(places) == len({*places})
    service = client.get("services", "kubernetes", "default")
    assert service is not None
    assert ("10.96.0.1", 7443) == (service["spec"]["clusterIP"], service["spec"]["ports"][0]["targetPort"])
    endpoints = client.get("endpoints", "kubernetes", "default")
    slice_ = client.get("endpointslices.discovery.k8s.io", "kubernetes", "default")
    assert endpoints is not None
    assert slice_ is not None
    assert [{"addresses": [{"ip": "127.0.0.1"}], "ports": slice_["ports"]}] == endpoints["subsets"]
    assert ("IPv4", ["127.0.0.1"]) == (slice_["addressType"], slice_["endpoints"][0]["addresses"])
    assert client.get("namespaces", "mine") is not None
    assert client.get("clusterroles.rbac.authorization.k8s.io", "cluster-admin") is not None


def test_a_server_whose_address_is_a_name_has_no_endpoints() -> None:
    """Addresses are in them, and names do not."""
    assert ["services"] == [key for key, _ in server_objects("cluster.example.com", 6443)]
