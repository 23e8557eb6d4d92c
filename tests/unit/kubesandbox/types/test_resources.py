"""The served resources, by path, by kind and by storage key."""

from __future__ import annotations

from kubesandbox.types.resources import ResourceType, builtin_table
from pyverno.kube.gvk import GVK

TABLE = builtin_table("1.35")


def test_kyverno_is_unknown_to_the_server() -> None:
    """Only Kubernetes' own groups are served until definitions are created."""
    assert [] == [group for group in TABLE.group_versions() if "kyverno" in group or "report" in group]


def test_versions_follow_the_release() -> None:
    """MutatingAdmissionPolicy became v1 in 1.36, and beta in 1.34."""
    key = "mutatingadmissionpolicies.admissionregistration.k8s.io"
    served = {
        version: [item.version for item in builtin_table(version).versions_of(key)]
        for version in ("1.32", "1.35", "1.36")
    }
    assert {"1.32": ["v1alpha1"], "1.35": ["v1beta1", "v1alpha1"], "1.36": ["v1", "v1beta1", "v1alpha1"]} == served


def test_events_of_both_groups_are_the_same_objects() -> None:
    """The core group and events.k8s.io share their storage."""
    assert [("", "v1"), ("events.k8s.io", "v1")] == [(item.group, item.version) for item in TABLE.versions_of("events")]


def test_reviews_can_only_be_created() -> None:
    """Reviews are questions, not objects."""
    reviews = TABLE.find("authorization.k8s.io", "v1", "subjectaccessreviews")
    assert reviews is not None
    assert ("create",) == reviews.verbs


def test_a_definition_adds_its_types_and_takes_them_away() -> None:
    """Tables are values: the first one stays as it was."""
    foo = ResourceType("x.io", "v1", "foos", "Foo", "foo", namespaced=True, crd="foos.x.io")
    wider = TABLE.with_types([foo])
    assert foo == wider.by_kind(GVK("x.io", "v1", "Foo")) == wider.find("x.io", "v1", "foos")
    assert (foo,) == wider.in_version("x.io", "v1")
    assert None is TABLE.find("x.io", "v1", "foos")
    assert None is wider.without_crd("foos.x.io").find("x.io", "v1", "foos")


def test_scale_has_a_kind_of_its_own() -> None:
    """Subresources take other objects than their resource."""
    deployments = TABLE.find("apps", "v1", "deployments")
    assert deployments is not None
    assert GVK("autoscaling", "v1", "Scale") == deployments.subresource_gvk("scale")
    assert GVK("apps", "v1", "Deployment") == deployments.subresource_gvk("status")
