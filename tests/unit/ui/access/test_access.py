"""A request of a rule is checked as the API server checks it."""

from __future__ import annotations

import pytest

from pyverno.errors import HostError
from pyverno.kube.apipath import parse_api_path
from pyverno.ui.access.access import Access, access_of_path


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/api/v1/pods", Access("list", "", "v1", "pods")),
        ("/api/v1/namespaces/shop/pods/web", Access("get", "", "v1", "pods", "", "shop", "web")),
        ("/api/v1/namespaces/shop/pods/web/log", Access("get", "", "v1", "pods", "log", "shop", "web")),
        ("/api/v1/namespaces/shop/services/web/proxy/a/b", Access("get", "", "v1", "services", "proxy", "shop", "web")),
        ("/api/v1/namespaces", Access("list", "", "v1", "namespaces")),
        ("/api/v1/namespaces/shop", Access("get", "", "v1", "namespaces", "", "shop", "shop")),
        ("/api/v1/namespaces/shop/status", Access("get", "", "v1", "namespaces", "status", "shop", "shop")),
        ("/api/v1/nodes/n1/proxy", Access("get", "", "v1", "nodes", "proxy", "", "n1")),
        ("/apis/apps/v1/namespaces/shop/deployments", Access("list", "apps", "v1", "deployments", "", "shop")),
        ("/apis/apps/v1", Access("get", path="/apis/apps/v1")),
        ("/version", Access("get", path="/version")),
        ("/metrics", Access("get", path="/metrics")),
        ("/api/v1/secrets", Access("list", "", "v1", "secrets")),
    ],
)
def test_a_path_is_the_access_of_its_request(path: str, access: Access) -> None:
    """Resource, subresource, namespace and name, or a path that is no resource."""
    assert access == access_of_path(parse_api_path(path), "GET")


@pytest.mark.parametrize("path", ["/api/v1/watch/secrets", "/api/v1/proxy/namespaces/shop/pods/web"])
def test_an_old_verb_in_a_path_is_not_sent(path: str) -> None:
    """The API server reads another resource out of it."""
    with pytest.raises(HostError, match="only read"):
        access_of_path(parse_api_path(path), "GET")


@pytest.mark.parametrize("path", ["/api/v1/namespaces/shop/configmaps", "/api/v1/namespaces/shop/pods/web/eviction"])
def test_nothing_is_written(path: str) -> None:
    """A rule may post a review of rights, and nothing else; DELETE and PUT have no meaning here."""
    with pytest.raises(HostError, match="only read"):
        access_of_path(parse_api_path(path), "POST")
    for method in ("PUT", "PATCH", "DELETE"):
        with pytest.raises(HostError, match="only read"):
            access_of_path(parse_api_path(path), method)
    review = parse_api_path("/apis/authorization.k8s.io/v1/subjectaccessreviews")
    assert Access("create", "authorization.k8s.io", "v1", "subjectaccessreviews") == access_of_path(review, "POST")


def test_secrets_are_known_by_their_resource() -> None:
    """Whatever the version, verb or subresource; a resource of another group is another one."""
    assert Access("get", "", "v9", "secrets", "status", "a", "b").is_to_secrets
    assert not Access("get", "x.example.org", "v1", "secrets").is_to_secrets
