"""The objects that a cluster has from the beginning."""

from __future__ import annotations

from collections.abc import Iterator

from kubesandbox.authorization.bootstrap import bootstrap_objects
from kubesandbox.validation.names import address_problems
from pyverno.kube.json import JSONObject

__all__ = ["NAMESPACES", "first_objects", "server_objects"]

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {
    "system-cluster-critical": (2_000_000_000, "Used for system critical pods that must run in the cluster."),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their node."),
}


def first_objects(namespaces: tuple[str, ...] = ()) -> Iterator[tuple[str, JSONObject]]:
    """Yield storage keys and objects: namespaces, roles, and priority classes.

    >>> [key for key, _ in first_objects()][:2]
    ['namespaces', 'namespaces']
    """
    for name in dict.fromkeys((*NAMESPACES, *namespaces)):
        yield "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for body in bootstrap_objects():
        yield f"{body['kind'].lower()}s.rbac.authorization.k8s.io", body
    for name, (value, description) in _PRIORITIES.items():
        yield (
            "priorityclasses.scheduling.k8s.io",
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "description": description,
            },
        )


def server_objects(address: str, port: int) -> Iterator[tuple[str, JSONObject]]:
    """Yield storage keys and objects that hold the server's own address; they are written anew at every start.

    Unlike those of a real cluster they may hold a loopback address, because the server listens there.

    >>> [key for key, _ in server_objects("127.0.0.1", 6443)]
    ['services', 'endpoints', 'endpointslices.discovery.k8s.io']
    """
    yield "services", _service(port)
    if address_problems(address):
        return  # this field cannot hold a host name
    metadata: JSONObject = {"name": "kubernetes", "namespace": "default"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    yield (
        "endpoints",
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        },
    )
    yield (
        "endpointslices.discovery.k8s.io",
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv6" if ":" in address else "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    )


def _service(port: int) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
        },
    }
