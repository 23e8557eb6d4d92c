"""Objects as an API server admits them, mended where they are refused."""

from __future__ import annotations

import pytest

from pyverno.cli.equivalent.admission import admission_of
from pyverno.kube.json import JSONObject

ADMIT = admission_of("1.35")


def pod(**spec: object) -> JSONObject:
    """Return a Pod."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def test_defaults_are_filled_in() -> None:
    """As a validating webhook sees the object."""
    admitted = ADMIT(pod(containers=[{"name": "c", "image": "nginx"}]))
    assert admitted is not None
    assert ("Always", "Always") == (
        admitted["spec"]["restartPolicy"],
        admitted["spec"]["containers"][0]["imagePullPolicy"],
    )


@pytest.mark.parametrize(
    "body",
    [
        pod(),
        pod(containers=[]),
        pod(containers=[{"name": "B@d"}, {"image": "x"}]),
        pod(containers=[{"name": "c", "image": "x", "unknown": 1}]),
        pod(containers=[{"name": "c", "image": "x", "securityContext": {"seccompProfile": {"type": "no such"}}}]),
        pod(containers=[{"name": "c", "image": "x", "livenessProbe": {}}], ephemeralContainers=[{"name": "e"}]),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": {"spec": {}}}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"}, "spec": {}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "A"}, "spec": {"ports": [{}]}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["x"]},
        },
        {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"}},
    ],
)
def test_what_is_refused_is_mended(body: JSONObject) -> None:
    """The result is admitted without a further change, and the argument stays as it was."""
    before = str(body)
    admitted = ADMIT(body)
    assert admitted is not None
    assert admitted == ADMIT(admitted)
    assert before == str(body)


@pytest.mark.parametrize("body", [{}, {"apiVersion": "v1", "kind": "Nothing"}, pod(containers="x")])
def test_what_cannot_be_mended_is_refused(body: JSONObject) -> None:
    """An unknown kind, or values of wrong types."""
    assert ADMIT(body) is None


def test_labels_that_an_api_server_refuses_are_left_out() -> None:
    """Keys of labels and annotations, and values of labels."""
    metadata = {
        "name": "a",
        "labels": {"app": "web", "b@d": "x", "team": "not valid", "corp/": "x"},
        "annotations": {"a/b": "anything goes", "b@d": "x"},
    }
    admitted = ADMIT({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert admitted is not None
    assert ({"app": "web"}, {"a/b": "anything goes"}) == (
        admitted["metadata"]["labels"],
        admitted["metadata"]["annotations"],
    )


def test_autoscalers_keep_their_least_number() -> None:
    """Their limit is raised to it, and not the other way round."""
    spec: JSONObject = {"minReplicas": 7, "maxReplicas": 2, "scaleTargetRef": {}}
    admitted = ADMIT(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}, "spec": spec}
    )
    assert admitted is not None
    assert (7, 7) == (admitted["spec"]["minReplicas"], admitted["spec"]["maxReplicas"])


def test_custom_kinds_are_admitted_by_their_definition() -> None:
    """Unknown fields go, defaults come."""
    number = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": number}}}
    definition: JSONObject = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    body: JSONObject = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"x": 1}}
    admitted = admission_of("1.35", [definition])(body)
    assert admitted is not None
    assert ({"n": 3}, None) == (admitted["spec"], ADMIT(body))


def test_a_mount_gets_its_volume() -> None:
    """Only Pods with a mount can distinguish rules for mounts, and each mount needs a volume."""
    mount = {"name": "v", "mountPath": "/etc", "mountPropagation": "Bidirectional"}
    admitted = ADMIT(pod(containers=[{"name": "c", "image": "x", "volumeMounts": [mount]}]))
    assert admitted is not None
    assert [mount] == admitted["spec"]["containers"][0]["volumeMounts"]
    assert ["v"] == [each["name"] for each in admitted["spec"]["volumes"]]


def test_an_object_is_in_a_namespace_that_can_exist() -> None:
    """Names of namespaces are labels: another one is never that of an object."""
    body: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "kube-*"}}
    admitted = ADMIT(body)
    assert admitted is not None
    assert "default" == admitted["metadata"]["namespace"]


def test_containers_of_different_lists_get_different_names() -> None:
    """A value in all lists at once is a case of its own, which one name for all would never admit."""
    spec: JSONObject = {"initContainers": [{"image": "a"}, {"image": "b"}], "containers": [{"image": "c"}]}
    admitted = ADMIT({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})
    assert admitted is not None
    assert ["a", "b"] == [each["image"] for each in admitted["spec"]["initContainers"]]
    assert ["c"] == [each["image"] for each in admitted["spec"]["containers"]]


def test_a_template_keeps_its_labels() -> None:
    """The one that the selector requires comes to them."""
    template: JSONObject = {"metadata": {"labels": {"team": "x"}}, "spec": {"containers": [{"image": "a"}]}}
    body: JSONObject = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    admitted = ADMIT({**body, "spec": {"template": template}})
    assert admitted is not None
    assert {"team": "x", "app": "a"} == admitted["spec"]["template"]["metadata"]["labels"]


def test_a_port_of_nodes_is_in_their_range_and_has_a_service_of_its_type() -> None:
    """Neither the default type nor a number of other ports leaves the field out."""
    ports = [{"port": 80, "nodePort": 1, "name": "a"}, {"port": 81, "nodePort": 30100, "name": "b"}]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}}
    admitted = ADMIT(body)
    assert admitted is not None
    assert ("NodePort", [30001, 30100]) == (
        admitted["spec"]["type"],
        [each["nodePort"] for each in admitted["spec"]["ports"]],
    )
    twice = ADMIT({**body, "spec": {"ports": [{**each, "nodePort": 30000} for each in ports]}})
    assert twice is not None
    assert [30000, None] == [each.get("nodePort") for each in twice["spec"]["ports"]]
