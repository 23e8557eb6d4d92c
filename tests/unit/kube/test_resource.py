"""The view of one object."""

from pyverno.kube.gvk import GVK
from pyverno.kube.resource import Resource


def test_a_resource_shows_names_and_labels():
    """The document itself stays in raw."""
    raw = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "n", "generateName": "a-", "uid": "u", "annotations": {"k": "v"}},
    }
    view = Resource(raw)
    assert (GVK("apps", "v1", "Deployment"), "a", "n", "a-", "u") == (
        view.gvk,
        view.name,
        view.namespace,
        view.generate_name,
        view.uid,
    )
    assert raw is view.raw
    assert ({"k": "v"}, {}) == (view.annotations, view.labels)


def test_wrong_types_read_as_empty():
    """Admission objects are not validated yet, so fields may have wrong types."""
    for metadata in (None, [], "x", {"name": 1, "labels": {"a": 1}, "annotations": []}):
        view = Resource({"kind": 5, "metadata": metadata})
        assert ("", "", "", {}, {}) == (view.kind, view.api_version, view.name, view.labels, view.annotations)
