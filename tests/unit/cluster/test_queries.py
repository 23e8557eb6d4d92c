"""Requests to the API server as labels of the client query metric."""

from __future__ import annotations

import pytest

from pyverno.cluster.queries import WATCH, client_query


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/namespaces/shop", ("get", "namespaces", "")),
        ("GET", "/api/v1/namespaces/shop/pods", ("list", "pods", "shop")),
        ("GET", "/api/v1/namespaces/shop/pods/web", ("get", "pods", "shop")),
        ("PUT", "/api/v1/namespaces/shop/status", ("update_status", "namespaces", "")),
        ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events", ("create", "events", "shop")),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kyverno/leases/kyverno", ("update", "leases", "kyverno")),
        ("PUT", "/apis/kyverno.io/v1/clusterpolicies/check/status", ("update_status", "clusterpolicies", "")),
        ("PATCH", "/apis/kyverno.io/v1/clusterpolicies/check/status", ("patch", "clusterpolicies", "")),
        ("DELETE", "/apis/kyverno.io/v1/clusterpolicies/check", ("delete", "clusterpolicies", "")),
        ("DELETE", "/apis/kyverno.io/v1/clusterpolicies", ("delete_collection", "clusterpolicies", "")),
        (WATCH, "/apis/kyverno.io/v1/clusterpolicies", ("watch", "clusterpolicies", "")),
    ],
)
def test_requests_about_resources(method: str, path: str, expected: tuple[str, str, str]) -> None:
    """The labels are operation, resource and namespace."""
    assert expected == client_query(method, path)


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/apps/v1", "/version", "/", "/openapi/v3"])
def test_other_requests_have_no_labels(path: str) -> None:
    """Cases are discovery, versions and schemas."""
    assert client_query("GET", path) is None
