"""The table of kinds."""

from pyverno.kube.gvk import GVK, GVR, parse_kind_selector
from pyverno.kube.kinds import BUILTIN_KINDS


def test_built_in_kinds_are_found_by_kind_resource_and_name():
    """All indexes lead to the same entry."""
    info = BUILTIN_KINDS.find(GVK("networking.k8s.io", "v1", "NetworkPolicy"))
    assert info is not None
    assert info is BUILTIN_KINDS.by_resource(GVR("networking.k8s.io", "v1", "networkpolicies"))
    assert (info,) == BUILTIN_KINDS.named("netpol") == BUILTIN_KINDS.named("networkpolicies.networking.k8s.io")


def test_scope_is_known_for_unknown_versions():
    """Scope does not depend on the version."""
    assert BUILTIN_KINDS.is_namespaced(GVK("autoscaling", "v2beta2", "HorizontalPodAutoscaler")) is True
    assert BUILTIN_KINDS.is_namespaced(GVK("x.io", "v1", "Foo")) is None


def test_no_entry_hides_another():
    """Every group, version and kind is listed once."""
    assert len(list(BUILTIN_KINDS)) == len({info.gvr for info in BUILTIN_KINDS})


def test_custom_resource_definitions_give_a_new_table():
    """Only served versions, and the old table stays as it was."""
    crd = {
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"kind": "Foo", "plural": "foos", "shortNames": ["f"], "singular": "foo"},
            "versions": [
                {"name": "v1", "served": True, "subresources": {"status": {}}},
                {"name": "v0", "served": False},
            ],
        }
    }
    table = BUILTIN_KINDS.with_crds([crd, {"spec": 1}])
    assert [("v1", ("status",))] == [(info.version, info.subresources) for info in table.by_kind("Foo")]
    assert () == BUILTIN_KINDS.by_kind("Foo")


def test_selectors_pick_kinds_by_subresource():
    """A pattern for a subresource finds the kinds that have it."""
    found = {info.kind for info in BUILTIN_KINDS.select(parse_kind_selector("*/scale"))}
    assert {"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"} == found
