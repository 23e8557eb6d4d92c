"""Tests of `kubesandbox.discovery.openapi_paths`."""

from __future__ import annotations

import pytest

from kubesandbox.discovery.openapi_paths import resource_paths
from kubesandbox.types.resources import builtin_table

TABLE = builtin_table("1.35")


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (
            ("apps", "v1", "deployments"),
            {
                "/apis/apps/v1/deployments": "get",
                "/apis/apps/v1/namespaces/{namespace}/deployments": "delete get post",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}": "delete get patch put",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale": "get patch put",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status": "get patch put",
            },
        ),
        (
            ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
            {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "post"},
        ),
        (
            ("storage.k8s.io", "v1", "storageclasses"),
            {
                "/apis/storage.k8s.io/v1/storageclasses": "delete get post",
                "/apis/storage.k8s.io/v1/storageclasses/{name}": "delete get patch put",
            },
        ),
    ],
)
def test_paths_follow_from_scope_verbs_and_subresources(place: tuple[str, str, str], expected: dict[str, str]) -> None:
    """Each path has its HTTP methods."""
    type_ = TABLE.find(*place)
    assert type_ is not None
    found = resource_paths(type_, lambda _: {"type": "object"})
    methods = {path: " ".join(sorted(key for key in item if key != "parameters")) for path, item in found.items()}
    assert expected == methods


def test_no_two_operations_have_the_same_name() -> None:
    """Generated clients name their functions after operations."""
    names = [
        operation["operationId"]
        for type_ in TABLE
        for item in resource_paths(type_, lambda _: {}).values()
        for key, operation in item.items()
        if key != "parameters"
    ]
    assert sorted(set(names)) == sorted(names)
