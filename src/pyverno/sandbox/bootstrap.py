"""The objects that a cluster has from the beginning.

This module must never write; `Sandbox` creates what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyverno.kube.json import JSONObject
from pyverno.sandbox.authorization.bootstrap import bootstrap_objects

__all__ = ["NAMESPACES", "first_objects"]

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {
    "system-cluster-critical": (2_000_000_000, "Used for system critical pods that must run in the cluster."),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their node."),
}


def first_objects(*, port: int, namespaces: tuple[str, ...] = ()) -> Iterator[tuple[str, JSONObject]]:
    """Yield storage keys and objects: namespaces, roles, priority classes, and the service of the server itself.

    >>> [key for key, _ in first_objects(port=6443)][:2]
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
    yield "services", _service(port)


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
