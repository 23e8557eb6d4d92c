"""Default classes, and the RuntimeClass of pods."""

from __future__ import annotations

import pytest

from kubesandbox.admission.plugins.classes import admit_classes, admit_runtime_class
from pyverno.kube.status import StatusError
from tests.support.admissionstage import cluster, pod, request


def ingress_class(name, *, is_default=True, made="2025-01-01T00:00:00Z"):
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    metadata = {"name": name, "annotations": annotations, "creationTimestamp": made}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": metadata}


def ingress(annotations=None, **spec):
    metadata = {"name": "i", "namespace": "x", **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("body", "classes", "expected"),
    [
        (ingress(), [ingress_class("a")], "a"),
        (ingress(), [ingress_class("a", is_default=False)], None),
        (ingress(), [ingress_class("b"), ingress_class("a")], "a"),
        (ingress(), [ingress_class("a"), ingress_class("b", made="2025-02-01T00:00:00Z")], "b"),
        (ingress(ingressClassName="own"), [ingress_class("a")], "own"),
        (ingress({"kubernetes.io/ingress.class": "old"}), [ingress_class("a")], None),
    ],
)
def test_ingresses_get_the_newest_default_class(body, classes, expected):
    """Unless they name one, in the field or in the old annotation."""
    _, view = cluster(*classes)
    assert expected == admit_classes(request(body), view).object["spec"].get("ingressClassName")


def test_claims_get_the_default_class():
    """An empty class is a choice too."""
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    metadata = {"name": "fast", "annotations": annotations}
    _, view = cluster({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata})
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "x"}}
    assert "fast" == admit_classes(request({**claim, "spec": {}}), view).object["spec"]["storageClassName"]
    empty = {**claim, "spec": {"storageClassName": ""}}
    assert empty == admit_classes(request(empty), view).object


def runtime_class(**fields):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, **fields}


def test_runtime_classes_bring_their_surroundings():
    """Overhead, node selector and tolerations are laid over the pod's own."""
    toleration = {"key": "gvisor", "operator": "Exists"}
    _, view = cluster(
        runtime_class(
            overhead={"podFixed": {"cpu": "10m"}},
            scheduling={"nodeSelector": {"a": "1"}, "tolerations": [toleration]},
        )
    )
    body = pod(runtimeClassName="gvisor", nodeSelector={"b": "2"})
    spec = admit_runtime_class(request(body), view).object["spec"]
    assert ({"cpu": "10m"}, {"a": "1", "b": "2"}, [toleration]) == (
        spec["overhead"],
        spec["nodeSelector"],
        spec["tolerations"],
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found'),
        (
            {"runtimeClassName": "gvisor", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"runtimeClassName": "gvisor", "nodeSelector": {"a": "2"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 2",
        ),
    ],
)
def test_pods_that_contradict_their_class_are_refused(spec, why):
    """The errors have the texts of Kubernetes."""
    _, view = cluster(runtime_class(overhead={"podFixed": {"cpu": "10m"}}, scheduling={"nodeSelector": {"a": "1"}}))
    with pytest.raises(StatusError) as refused:
        admit_runtime_class(request(pod(**spec)), view)
    assert f'pods "p" is forbidden: {why}' == refused.value.message


def test_pods_without_a_class_are_left_alone():
    """Nothing is looked up."""
    _, view = cluster()
    attributes = request(pod())
    assert attributes is admit_runtime_class(attributes, view)
