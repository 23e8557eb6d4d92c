"""Discovery documents are those of a kube-apiserver."""

from __future__ import annotations

import pytest

from kubesandbox.discovery.groups import aggregated, api_groups, api_versions, group, resource_list, version_info
from kubesandbox.types.resources import ResourceType, builtin_table

TABLE = builtin_table("1.35")
WIDGETS = {
    version: ResourceType(
        group="x.example.com",
        version=version,
        plural="widgets",
        kind="Widget",
        singular="widget",
        namespaced=True,
        short_names=("wi",),
        categories=("all",),
        subresources=("scale", "status") if version == "v1" else (),
        crd="widgets.x.example.com",
    )
    for version in ("v1beta1", "v2alpha1", "v1", "v10")
}
WIDER = TABLE.with_types(WIDGETS.values())


def entry(group_name: str, name: str, version: str = "v1"):
    """Return one entry of a plain list."""
    found = resource_list(WIDER, group_name, version)
    assert found is not None
    return next(item for item in found["resources"] if item["name"] == name)


def test_the_core_group_is_served_under_api_alone() -> None:
    """The core group has no name and no place among the others."""
    assert ["v1"] == api_versions("127.0.0.1:6443")["versions"]
    names = [item["name"] for item in api_groups(TABLE)["groups"]]
    assert ["apiregistration.k8s.io", "apps", "events.k8s.io"] == names[:3]
    assert "" not in names
    assert {"kind": "APIResourceList", "groupVersion": "v1"} == {
        key: value for key, value in (resource_list(TABLE, "", "v1") or {}).items() if key != "resources"
    }


def test_an_ordinary_resource_has_all_its_names() -> None:
    """Names, verbs, categories and the hash of the stored version are a cluster's."""
    assert {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
        "storageVersionHash": "8aSe+NMegvE=",
    } == entry("apps", "deployments")


def test_scale_names_its_own_group() -> None:
    """Kubectl reads from there that scale objects are of autoscaling/v1."""
    expected = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}
    base = {"name": "deployments/scale", "singularName": "", "namespaced": True}
    assert {**base, **expected} == entry("apps", "deployments/scale")
    assert {**base, "name": "widgets/scale", **expected} == entry("x.example.com", "widgets/scale")


@pytest.mark.parametrize(
    ("name", "kind", "verbs"),
    [
        ("pods/log", "Pod", ["get"]),
        ("pods/exec", "PodExecOptions", ["create", "get"]),
        ("pods/binding", "Binding", ["create"]),
        ("pods/eviction", "Eviction", ["create"]),
        ("pods/resize", "Pod", ["get", "patch", "update"]),
        ("namespaces/finalize", "Namespace", ["update"]),
        ("serviceaccounts/token", "TokenRequest", ["create"]),
        ("services/proxy", "ServiceProxyOptions", ["create", "delete", "get", "patch", "update"]),
        ("bindings", "Binding", ["create"]),
        ("componentstatuses", "ComponentStatus", ["get", "list"]),
        ("namespaces", "Namespace", ["create", "delete", "get", "list", "patch", "update", "watch"]),
    ],
)
def test_core_resources_have_their_own_verbs(name: str, kind: str, verbs: list[str]) -> None:
    """Each resource lists only its own verbs: bindings can only be created, component statuses only read."""
    found = entry("", name)
    assert (kind, verbs) == (found["kind"], found["verbs"])


def test_versions_stand_in_order_of_preference() -> None:
    """Stable versions come first, higher ones before lower ones, as Kubernetes ranks names of versions."""
    found = group(WIDER, "x.example.com")
    assert found is not None
    assert ["v10", "v1", "v1beta1", "v2alpha1"] == [item["version"] for item in found["versions"]]
    assert {"groupVersion": "x.example.com/v10", "version": "v10"} == found["preferredVersion"]


def test_what_is_not_served_is_none() -> None:
    """The door answers 404."""
    assert None is group(TABLE, "x.example.com")
    assert None is resource_list(TABLE, "apps", "v1beta1")


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_the_aggregated_document_nests_subresources(version: str) -> None:
    """One document holds everything; kinds of other groups are named in full."""
    document = aggregated(WIDER, core=False, version=version)
    assert f"apidiscovery.k8s.io/{version}" == document["apiVersion"]
    apps = next(item for item in document["items"] if item["metadata"]["name"] == "apps")["versions"][0]
    assert ("v1", "Current") == (apps["version"], apps["freshness"])
    deployments = next(item for item in apps["resources"] if item["resource"] == "deployments")
    assert {"group": "", "version": "", "kind": "Deployment"} == deployments["responseKind"]
    assert ["scale", "status"] == [item["subresource"] for item in deployments["subresources"]]
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert scale == deployments["subresources"][0]["responseKind"]


def test_custom_resources_are_named_in_full() -> None:
    """Their kinds always carry group and version, and status is before scale."""
    document = aggregated(WIDER, core=False)
    widgets = {item["version"]: item["resources"][0] for item in document["items"][-1]["versions"]}
    assert {"group": "x.example.com", "version": "v1", "kind": "Widget"} == widgets["v1"]["responseKind"]
    assert ["status", "scale"] == [item["subresource"] for item in widgets["v1"]["subresources"]]
    assert "subresources" not in widgets["v10"]


def test_the_core_group_is_aggregated_alone() -> None:
    """Under /api is one group without a name, cluster-wide and namespaced resources in it."""
    (core,) = aggregated(TABLE, core=True)["items"]
    scopes = {item["resource"]: item["scope"] for item in core["versions"][0]["resources"]}
    assert ({}, "Cluster", "Namespaced") == (core["metadata"], scopes["nodes"], scopes["pods"])


def test_the_version_is_read_in_parts() -> None:
    """Clients compare major and minor, and parse gitVersion."""
    found = version_info("1.37")
    assert ("1", "37", "v1.37.0") == (found["major"], found["minor"], found["gitVersion"])
