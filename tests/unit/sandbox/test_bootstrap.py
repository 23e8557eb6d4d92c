"""The objects of the beginning."""

from __future__ import annotations

from pyverno.sandbox.bootstrap import first_objects
from pyverno.sandbox.local import LocalClient
from tests.unit.sandbox.serving import ADMIN, api_server, run


def test_all_first_objects_are_valid() -> None:
    """They pass the whole server, each once."""
    server = api_server()
    client = LocalClient(server, ADMIN)
    objects = [*first_objects(port=7443, namespaces=("mine", "default"))]
    for key, body in objects:
        metadata = body["metadata"]
        if client.get(key, metadata["name"], metadata.get("namespace", "")) is None:
            run(client.create(key, body))
    places = [(key, body["metadata"].get("namespace"), body["metadata"]["name"]) for key, body in objects]
    assert len(places) == len({*places})
    service = client.get("services", "kubernetes", "default")
    assert service is not None
    assert ("10.96.0.1", 7443) == (service["spec"]["clusterIP"], service["spec"]["ports"][0]["targetPort"])
    assert client.get("namespaces", "mine") is not None
    assert client.get("clusterroles.rbac.authorization.k8s.io", "cluster-admin") is not None
