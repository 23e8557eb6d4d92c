"""A request of the server as the engine sees it."""

from __future__ import annotations

import pytest

from kubesandbox.admission.policies.requests import display_name, namespace_object, refused
from pyverno.engine.request import Operation
from pyverno.kube.gvk import GVK, GVR
from tests.support.admissionstage import TABLE, cluster, config_map, engine_request, namespace, pod, request


def test_a_question_has_everything_of_the_request():
    """User, objects, names and the namespace with its labels."""
    _, view = cluster(namespace("x", team="a"))
    found = engine_request(request(config_map(), old=config_map("old"), operation=Operation.UPDATE, dry_run=True), view)
    assert (GVK("", "v1", "ConfigMap"), GVR("", "v1", "configmaps")) == (found.gvk, found.gvr)
    assert ("c", "x", "jane", True) == (found.name, found.namespace, found.user.username, found.dry_run)
    assert (config_map(), config_map("old")) == (found.object, found.old)
    assert "a" == found.namespace_labels["team"] == found.namespace_object["metadata"]["labels"]["team"]
    assert "UpdateOptions" == found.admission["options"]["kind"]


def test_another_version_shows_the_object_in_it():
    """`requestResource` and `resource` differ."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "namespace": "x"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3},
    }
    _, view = cluster()
    found = engine_request(request(scaler), view, TABLE.find("autoscaling", "v1", "horizontalpodautoscalers"))
    assert "autoscaling/v1" == found.object["apiVersion"]
    assert ("v1", "v2") == (found.gvk.version, found.admission["requestKind"]["version"])


def test_objects_of_subresources_keep_their_kind():
    """An Eviction is no Pod in any requested version."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "x"}}
    _, view = cluster()
    attributes = request(pod(), subresource="eviction", kind=GVK("policy", "v1", "Eviction")).with_object(eviction)
    found = engine_request(attributes, view)
    assert (GVK("policy", "v1", "Eviction"), "eviction", eviction) == (found.gvk, found.subresource, found.object)


def test_a_namespace_is_its_own_namespace():
    """While it is written it is what it is going to be, while it is deleted what it is."""
    _, view = cluster()
    new = namespace("x", team="b")
    assert new == namespace_object(request(new, old=namespace("x"), operation=Operation.UPDATE), view)
    stored = namespace_object(request(None, old=namespace("x"), operation=Operation.DELETE), view)
    assert "team" not in stored["metadata"]["labels"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [({"name": "a"}, "a"), ({"generateName": "a-"}, "a-"), ({}, "Unknown")],
)
def test_refusals_show_the_name_that_there_is(metadata, expected):
    """A name that is still to be made is shown by its beginning."""
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "namespace": "x"}}
    attributes = request(body)
    assert expected == display_name(attributes)
    assert f'pods "{expected}" is forbidden: why' == refused(attributes, "why").message
